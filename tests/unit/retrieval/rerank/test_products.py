from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recollect.retrieval.rerank.apply import inner_products


@given(n=st.integers(0, 300), m=st.integers(0, 40), dimension=st.integers(1, 400))
def test_blocks_make_the_whole_product(n, m, dimension):
    random = np.random.default_rng(n * 1000 + m)
    rows = random.normal(size=(n, dimension)).astype(np.float32)
    columns = random.normal(size=(m, dimension)).astype(np.float32)
    np.testing.assert_allclose(inner_products(rows, columns), rows @ columns.T, atol=1e-3)
