"""The certificate of a release: what was promised, under which assumptions, and what anyone needs
to check it.

docs/certificate.md says what every field means, docs/certificate.schema.json is the same form as a
JSON Schema. Nothing here knows how designs are made: who checks a certificate needs no more than
this folder and what a certificate holds.

document   the certificate and its sections        designs   of every kind, local and owner's
model      as in model files, and how it fits      stopping  what owner's designs share
form       reading JSON that must have a form
"""

from offrecord.release.certificate.designs import (
    COMPOSITION,
    DRAW_BITS,
    KINDS,
    MAXIMUM,
    STOPPING,
    Composition,
    Design,
    Designs,
    Grids,
    LocalDesign,
    LocalDesigns,
    OtherDesign,
    OtherDesigns,
    OwnerDesign,
    OwnerDesigns,
    phase_runs,
    read_designs,
    spelled_phases,
    spelled_rows,
)
from offrecord.release.certificate.document import (
    ASSUMPTIONS,
    CERTIFICATE_VERSION,
    FORMAT,
    KEPT,
    POSITIONS,
    Certificate,
    Claim,
    Columns,
    Counts,
    Output,
    Positions,
    Private,
    Release,
    assumptions,
    claim_statement,
    software_versions,
)
from offrecord.release.certificate.model import (
    PHASES,
    Audit,
    Learned,
    Model,
    ModelCheck,
    ModelComparison,
    ModelSet,
)
from offrecord.release.certificate.stopping import (
    GapStopping,
    Stopping,
    StoppingPair,
    StoppingSide,
    spelled_thresholds,
)

__all__ = [
    "ASSUMPTIONS",
    "CERTIFICATE_VERSION",
    "COMPOSITION",
    "DRAW_BITS",
    "FORMAT",
    "KEPT",
    "KINDS",
    "MAXIMUM",
    "PHASES",
    "POSITIONS",
    "STOPPING",
    "Audit",
    "Certificate",
    "Claim",
    "Columns",
    "Composition",
    "Counts",
    "Design",
    "Designs",
    "GapStopping",
    "Grids",
    "Learned",
    "LocalDesign",
    "LocalDesigns",
    "Model",
    "ModelCheck",
    "ModelComparison",
    "ModelSet",
    "OtherDesign",
    "OtherDesigns",
    "Output",
    "OwnerDesign",
    "OwnerDesigns",
    "Positions",
    "Private",
    "Release",
    "Stopping",
    "StoppingPair",
    "StoppingSide",
    "assumptions",
    "claim_statement",
    "phase_runs",
    "read_designs",
    "software_versions",
    "spelled_phases",
    "spelled_rows",
    "spelled_thresholds",
]
