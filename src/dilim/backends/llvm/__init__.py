"""The LLVM back end: graphs to machine code for the processor at hand, with strict arithmetic."""
