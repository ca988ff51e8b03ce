"""Write docs/certificate.schema.json anew from the code: `python -m tests.schema`."""

import json
from pathlib import Path

from offrecord.release.certificate import Certificate

if __name__ == "__main__":
    text = json.dumps(Certificate.model_json_schema(), indent=1, ensure_ascii=False) + "\n"
    path = Path(__file__).parent.parent / "docs" / "certificate.schema.json"
    path.write_text(text, encoding="utf-8")
