"""Programs that train on real data: ``python -m cudagrad.examples.gpt``, and images, trees, policy beside it."""
