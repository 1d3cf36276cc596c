// Overlaid time series of two trials.
import { chart } from '../charts/chart'
import { panel, type Curve, type Panel } from '../charts/timeseries'
import { units } from '../format/format'
import type { Pair } from '../go/compare'
import type { Detail } from '../go/webdata'
import { h, replace } from '../ui/dom'
import { trialOf } from './api'
import { errorMessage } from './pages'

interface Course { t: number[]; bin: number; values: number[] }

/** held resamples a course: each value holds until the end of its bin. */
export function held(c: Course, t: number[]): (number | null)[] {
  let i = -1
  return t.map((at) => {
    while (i + 1 < c.t.length && c.t[i + 1]! <= at) i++
    const v = c.values[i]
    return v === undefined || at >= c.t[i]! + c.bin ? null : v
  })
}

/** figuresOf returns the figures that both trials have: goodput, and percentiles of common operations. */
export function figuresOf(a: Detail, b: Detail): { name: string; of(d: Detail): Course }[] {
  const goodput = (d: Detail): Course => ({ t: d.timeline?.t ?? [], bin: d.timeline?.bin_s ?? 1, values: d.timeline?.ok ?? [] })
  const both = (a.operations?.names ?? []).filter((n) => b.operations?.names.includes(n))
  const tail = (name: string, q: 'p95' | 'p99') => (d: Detail): Course =>
    ({ t: d.operations!.t, bin: d.operations!.bin_s, values: d.operations![q][d.operations!.names.indexOf(name)]! })
  return [{ name: 'Goodput', of: goodput },
    ...both.flatMap((n) => (['p95', 'p99'] as const).map((q) => ({ name: `${n} ${q}`, of: tail(n, q) })))]
}

/** overlaid is a panel with the curves of A and B. */
export function overlaid(f: { name: string; of(d: Detail): Course }, a: Detail, b: Detail): Panel {
  const [x, y] = [f.of(a), f.of(b)]
  const t = [...new Set([...x.t, ...y.t])].sort((p, q) => p - q)
  const goodput = f.name === 'Goodput'
  const curve = (name: string, c: Course, i: number): Curve =>
    ({ name, values: held(c, t).map((v) => (goodput ? v : v || null)), colour: (c) => c.series[i]!, dashed: i > 0 })
  return {
    title: f.name, unit: goodput ? units.opsPerSecond : { ...units.latency, name: 'logarithmic' }, log: !goodput, t,
    bin: Math.min(x.bin, y.bin), last: Math.max(1, ...[x, y].map((c) => (c.t.at(-1) ?? 0) + c.bin)),
    curves: [curve('A', x, 0), curve('B', y, 1)], bands: a.bands ?? [], named: true, height: 230,
  }
}

/** courses shows one repetition of each side, with a selector for the figure. */
export function courses(p: Pair): { element: HTMLElement; close(): void } {
  const box = h('div', { class: 'courses' }, h('p', { class: 'muted small' }, 'Loading time series.'))
  let close = () => {}
  let closed = false
  async function show(): Promise<void> {
    const [a, b] = await Promise.all([p.a, p.b].map((s) => trialOf(s.run, s.trials[0]!)))
    if (closed || !a || !b) return
    const all = figuresOf(a, b)
    const charts = [all[0]!, all[1] ?? all[0]!].map((f) => chart(panel(overlaid(f, a, b)))).slice(0, all.length > 1 ? 2 : 1)
    const pick = h('select',
      { 'aria-label': 'Figure over time', onchange: () => charts[1]?.update(panel(overlaid(all[Number(pick.value)]!, a, b))) },
      all.slice(1).map((f, i) => h('option', { value: i + 1 }, f.name)))
    close = () => charts.forEach((c) => c.dispose())
    replace(box, h('div', { class: 'controls' },
      h('span', { class: 'muted small' },
      `Over time: trial ${p.a.trials[0]} of A (solid) and trial ${p.b.trials[0]} of B (dashed); coloured bands: events of A; ` +
        `grey bands: CPU taken from the driver of A.`),
      all.length > 2 ? h('label', { class: 'field' }, 'Latency', pick) : null),
      h('div', { class: 'columns even' }, charts.map((c) => c.element)))
  }
  show().catch((e: unknown) => { if (!closed) replace(box, errorMessage(e)) })
  return { element: box, close() { closed = true; close() } }
}
