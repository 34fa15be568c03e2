"""How well one colour stands out on another, as WCAG 2 defines it."""


def contrast(first, second):
    """The ratio of two colours, each as shares of red, green and blue."""
    low, high = sorted([_luminance(first), _luminance(second)])
    return (high + 0.05) / (low + 0.05)


def _luminance(colour):
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
