"""A tour of gpuplan as a notebook: marimo edit examples/tour.py"""

import marimo

app = marimo.App(width="medium", app_title="gpuplan: a tour")


@app.cell
def _():
    import marimo as mo

    import gpuplan

    mo.md("# gpuplan: a tour\n\nChange a number, and everything below it follows.")
    return gpuplan, mo


@app.cell
def _(mo):
    users = mo.ui.slider(500, 20_000, 500, value=6000, label="users")
    tpot_ms = mo.ui.slider(20, 100, 5, value=40, label="TPOT p95 (ms)")
    mo.hstack([users, tpot_ms])
    return tpot_ms, users


@app.cell
def _(gpuplan, tpot_ms, users):
    words = f"Llama-3.3-70B, {users.value} users, chat, fp8, on H100, tpot {tpot_ms.value} ms"
    answer = gpuplan.plan(words)
    answer
    return (answer,)


@app.cell
def _(answer, mo):
    rows = answer.to_dict()["comparison"]
    keys = ("accelerator", "precision", "n_accelerators", "usd_per_month", "probability_frac")
    mo.ui.table(
        [{key: row[key] for key in keys} for row in rows], label="What it was compared with"
    )
    return


@app.cell
def _(gpuplan, mo):
    fits = gpuplan.fit("Llama-3.3-70B", "H100", gpuplan.FitRequest(tp=2, precision="fp8"))
    mo.md(
        f"**Does it fit?** {'yes' if fits.fits else 'no'}: {fits.max_concurrency} requests at once."
    )
    return


@app.cell
def _(gpuplan):
    gpuplan.predict("Llama-3.3-70B", "2xH100", gpuplan.PredictRequest(precision="fp8"))
    return


if __name__ == "__main__":
    app.run()
