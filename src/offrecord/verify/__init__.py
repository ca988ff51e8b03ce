"""Checking a certificate, by arithmetic that rounds outwards and by nothing that made it.

Nothing here imports how models are read from data, designs are made or tables are redacted: only
the certificate's own form. A test walks the imports.

balls    numbers in balls                  chain     the model as exact numbers
problem  what a local design redacts       alone     what it tells under the model alone

histories         the same for order above 1       hidden   for hidden states
pairs_of_outputs  which of millions tells most     states   given states at a secret's ends
sets              over a set of models: cones for up to four states, bounds for more
"""
