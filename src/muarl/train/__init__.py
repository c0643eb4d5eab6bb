"""Training: scheduler to samples, samples to kernel, kernel to new weights."""
