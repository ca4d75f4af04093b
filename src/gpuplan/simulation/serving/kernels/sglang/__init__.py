"""SGLang's scheduler, compiled: prefill first, requested lengths reserved, a radix tree of text."""
