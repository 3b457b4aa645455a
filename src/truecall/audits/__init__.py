"""Published results, recounted: what a benchmark's files say when lost calls are kept apart from abstentions."""
