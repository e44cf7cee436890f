"""Makes addresses out of titles."""

import re


def slugify(title: str) -> str:
    """Return the title in lower case, with hyphens for everything that is no plain letter or digit."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
