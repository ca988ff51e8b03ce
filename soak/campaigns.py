"""All campaigns, by name."""

from soak.campaign import Campaign
from soak.designs import DesignsCampaign

CAMPAIGNS: dict[str, Campaign] = {one.name: one for one in (DesignsCampaign(),)}
