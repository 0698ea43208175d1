# SPDX-License-Identifier: Apache-2.0
"""Tables as text, and as a chart."""
from . import rows


def model_header():
    return (f"{'model':<15}{'ours ms':>9}{'p90':>9}{'theirs':>9}{'p90':>9}{'ratio':>7}{'goal':>6}{'floor ms':>9}  {'':<14}{'create':>8}{'theirs':>8}"
            f"{'MiB':>6}{'theirs':>8}{'ratio':>7}{'error':>10}")


def verdict(result):
    if result["met_by_ratio"]:
        return "met"
    return "met by floor" if result["met_by_floor"] else "missed"


def model_line(r):
    return (f"{r['model']:<15}{r['ours']['median_ms']:9.2f}{r['ours']['p90_ms']:9.2f}{r['theirs']['median_ms']:9.2f}{r['theirs']['p90_ms']:9.2f}{r['ratio']:7.2f}{r['goal']:6.2f}"
            f"{r['floor_ms']:9.2f}  {verdict(r):<14}{r['ours']['create_ms']:8.0f}{r['theirs']['create_ms']:8.0f}"
            f"{r['ours']['memory_mb']:6.0f}{r['theirs']['memory_mb']:8.0f}{r['memory_ratio']:7.2f}{r['difference']:10.1e}")


def load_header():
    return f"{'model':<15}{'ours ms':>9}{'p90':>9}{'p99':>9}{'theirs':>9}{'p90':>9}{'p99':>9}{'ratio':>7}{'p90':>6}{'p99 limit':>11}"


def load_line(r):
    o, t = r["ours"], r["theirs"]
    return (f"{r['model']:<15}{o['median_ms']:9.2f}{o['p90_ms']:9.2f}{o['p99_ms']:9.2f}{t['median_ms']:9.2f}{t['p90_ms']:9.2f}{t['p99_ms']:9.2f}"
            f"{r['ratio']:7.2f}{r['p90_ratio']:6.2f}{r['p99_limit_ms']:11.2f}  {'met' if r['met'] else 'missed'}")


def overhead_lines(overheads):
    lines = [f"{'overhead':<64}{'ours':>10}{'theirs':>10}{'goal':>8}"]
    for one in overheads:
        theirs = "-" if one.theirs is None else f"{one.theirs:.4g}"
        lines.append(f"{one.name:<64}{one.ours:>10.3g}{theirs:>10}{one.goal:>8.3g} {one.unit:<3} {'met' if one.met else 'missed'}")
    return lines


def plot(results, title, path):
    """Draws two charts: for each model the ratio of times with its goal, and the ratio of peak memory."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(12, 1 + 0.4 * len(results)), sharey=True)
    names = [r["model"] for r in results][::-1]
    for axis, key, goals, label in (
        (axes[0], "ratio", [r["goal"] for r in results][::-1], "time of a run, ours / theirs"),
        (axes[1], "memory_ratio", [rows.MEMORY_GOAL] * len(results), "peak memory, ours / theirs"),
    ):
        values = [r[key] for r in results][::-1]
        colors = ["#3a7d44" if value <= goal else "#c0504d" for value, goal in zip(values, goals)]
        axis.barh(names, values, color=colors)
        axis.scatter(goals, names, marker="|", s=300, color="black", label="goal", zorder=3)
        axis.axvline(1, color="grey", linewidth=1)
        axis.set_xlabel(label)
        limit = min(max(*values, 1.0), 2.0)  # larger values would make the other bars unreadably short
        axis.set_xlim(0, 1.15 * limit)
        for place, value in enumerate(values):
            axis.text(min(value, limit), place, f" {value:.2f}", va="center")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper right")
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
