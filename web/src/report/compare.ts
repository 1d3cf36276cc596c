// The section that compares cells over any axis of the matrix.
import type { Metric, Run } from '../go/webdata'
import { chart } from '../charts/chart'
import { comparison, type Choice } from '../charts/comparison'
import { h } from '../ui/dom'

/** select is a labelled selector. name is its accessible name if several have the same label. */
export function select(label: string, options: [string, string][], chosen: string, change: (value: string) => void,
  name = label): HTMLElement {
  const e = h('select', { 'aria-label': name, onchange: () => change(e.value) },
    options.map(([value, text]) => h('option', { value, selected: value === chosen }, text)))
  return h('label', { class: 'field' }, label, e)
}

/** compare returns the section, or null if the run has nothing to compare. */
export function compare(run: Run): HTMLElement | null {
  const metrics = run.metrics.filter((m) => run.cells.some((c) => c.estimates[m.id]))
  const measured = run.cells.filter((c) => Object.keys(c.estimates).length > 0)
  if (run.vary.length === 0 || measured.length < 2 || metrics.length === 0) return null
  const scale = run.vary.findIndex((a) => a.name === 'scale')
  let axis = scale >= 0 ? scale : run.vary.reduce((best, a, i) => (a.values.length > run.vary[best]!.values.length ? i : best), 0)
  let base = ''
  const id = (wanted: string) => metrics.find((m) => m.id === wanted) ?? metrics[0]!
  let operation = run.operations[0]
  const choice = (m: Metric): Choice => ({ axis, metric: m, base: base === '' ? undefined : Number(base), operation })
  let picked = id('goodput')
  const second = id('p99')
  const main = chart(comparison(run, choice(picked)))
  const other = metrics.length > 1 ? chart(comparison(run, choice(second))) : undefined
  let secondPicked = second
  const draw = () => {
    main.update(comparison(run, choice(picked)))
    other?.update(comparison(run, choice(secondPicked)))
  }
  const bases = h('span')
  const baseChoice = () => {
    const values = run.vary[axis]!.values
    bases.replaceChildren(select('Show',
      [['', 'values'], ...values.map((v, i): [string, string] => [String(i), `multiples of ${run.vary[axis]!.label} ${v}`])], base, (v) => {
      base = v
      draw()
    }))
  }
  baseChoice()
  const metricChoice = (label: string, which: string, now: Metric, set: (m: Metric) => void) =>
    select(label, metrics.map((m): [string, string] => [m.id, m.label]), now.id, (v) => {
      set(id(v))
      draw()
    }, `${label} ${which}`)
  return h('section', { class: 'part', id: 'compare', 'aria-labelledby': 'h-compare' },
    h('h2', { id: 'h-compare' }, 'Comparison'),
    h('p', { class: 'about' },
      'Bars are means over repetitions; whiskers are 95 % confidence intervals. With one repetition, the goodput interval is ' +
        'from batches within the trial. Pale bars are from suspect trials. Latencies are for one operation; cells without it are empty.'),
    h('div', { class: 'card' },
      h('div', { class: 'controls' },
        run.vary.length > 1 ? select('Over', run.vary.map((a, i): [string, string] => [String(i), a.label]), String(axis), (v) => {
          axis = Number(v)
          base = ''
          baseChoice()
          draw()
        }) : null,
        run.operations.length > 1 ? select('Latency of', run.operations.map((o): [string, string] => [o, o]), operation ?? '', (v) => {
          operation = v
          draw()
        }) : null,
        bases),
      h('div', { class: 'pair' },
        h('div', {}, metricChoice('Figure', 'on the left', picked, (m) => { picked = m }), main.element),
        other ? h('div', {}, metricChoice('Figure', 'on the right', secondPicked, (m) => { secondPicked = m }), other.element) : null)))
}
