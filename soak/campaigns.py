"""All campaigns, by name."""

from soak.campaign import Campaign
from soak.certificates import CertificatesCampaign
from soak.designs import DesignsCampaign
from soak.inputs import InputsCampaign
from soak.kills import KillsCampaign

CAMPAIGNS: dict[str, Campaign] = {
    one.name: one
    for one in (DesignsCampaign(), CertificatesCampaign(), KillsCampaign(), InputsCampaign())
}
