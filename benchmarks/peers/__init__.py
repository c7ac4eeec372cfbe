"""What recollect is measured beside, one module a system; `peers.base` says what each of them offers."""
