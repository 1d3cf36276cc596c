// Comparison of two runs: all metrics with tests.
import { duration, figure, percent, plural, units } from '../format/format'
import { h, replace, s } from '../ui/dom'
import { wide } from '../ui/table'
import { theme } from '../ui/theme'
import type { Report as Comparison, SideFigures, LinkFigure, Metric } from '../go/compare'
import type { Cell as CellRow } from '../go/serve'
import { compare, detail, reportOf, runs } from './api'
import { courses } from './courses'
import { compareAddress, parameters, trouble, type Page } from './pages'
import { olderFirst } from './runspage'

/** write formats a value in a unit of package metric. */
export function write(v: number, unit: string): string {
  if (unit === 's') return duration(v * 1e6)
  if (unit === 'B') return units.bytes.write(v)
  if (unit === '%') return units.share.write(v)
  if (unit === '/s') return units.opsPerSecond.write(v)
  return unit ? `${figure(v)} ${unit}` : figure(v)
}

/** strip draws the repetitions of both sides as dots over one axis, with a bar for the interval of the mean. */
export function strip(m: Metric): SVGElement {
  const t = theme()
  const all = [...m.a.values, ...m.b.values]
  const span = (f: SideFigures) => [f.mean - (f.ci95 ?? 0), f.mean + (f.ci95 ?? 0)]
  const lo = Math.min(...all, ...span(m.a), ...span(m.b))
  const hi = Math.max(...all, ...span(m.a), ...span(m.b))
  const x = (v: number) => 8 + 164 * (hi > lo ? (v - lo) / (hi - lo) : 0.5)
  const side = (f: SideFigures, y: number, colour: string) => [
    s('line', { x1: x(span(f)[0]!), x2: x(span(f)[1]!), y1: y, y2: y, stroke: colour, 'stroke-width': 5, 'stroke-opacity': 0.3,
      'stroke-linecap': 'round' }),
    ...f.values.map((v) => s('circle', { cx: x(v), cy: y, r: 3, fill: 'none', stroke: colour })),
    s('circle', { cx: x(f.mean), cy: y, r: 3.5, fill: colour }),
  ]
  return s('svg', { class: 'strip', viewBox: '0 0 180 28', width: 180, height: 28, role: 'img', 'aria-label': m.sentence },
    side(m.a, 8, t.series[0]!), side(m.b, 20, t.series[1]!))
}

/** comparePage compares two runs. Runs without a name are selected in the form. */
export function comparePage(a: string, b: string): Page {
  const out = h('div', { 'aria-live': 'polite' })
  const form = h('form', { class: 'card compare' })
  const element = h('div', { class: 'page' }, h('h1', {}, 'Compare'), form, out)
  let closed = false
  const drawn: (() => void)[] = []
  const clear = () => drawn.splice(0).forEach((close) => close())

  const all = '' // every cell that both runs have
  async function build(): Promise<void> {
    const list = (await runs()).filter((r) => r.state !== 'unreadable')
    if (list.length === 0) {
      replace(out, h('p', { class: 'muted' }, 'No runs to compare.'))
      return
    }
    const pick = (label: string, chosen: string) => {
      const e = h('select', { 'aria-label': `Run ${label}` },
        list.map((r) => h('option', { value: r.name, selected: r.name === chosen }, r.name)))
      if (chosen) e.value = chosen
      return e
    }
    const [runA, runB] = [pick('A', a || list[0]!.name), pick('B', b || list[Math.min(1, list.length - 1)]!.name)]
    const [cellA, cellB] = [h('select', { 'aria-label': 'Cell of A' }), h('select', { 'aria-label': 'Cell of B' })]
    const cells = async (run: HTMLSelectElement, cell: HTMLSelectElement, first: number) => {
      const d = await detail(run.value)
      const name = (c: CellRow) => Object.entries(c.parameters).map(([k, v]) => `${k} ${v}`).join(', ')
      replace(cell, h('option', { value: all }, 'all matching cells'),
        d.cells.map((c) => h('option', { value: c.number, disabled: c.ended_ok === 0 }, `${c.number}: ${name(c)}`)))
      const usable = d.cells.filter((c) => c.ended_ok > 0)
      cell.value = runA.value === runB.value && usable.length > 1 ? String(usable[Math.min(first, usable.length - 1)]!.number) : all
    }
    const refresh = async () => {
      const [x, y] = [runA, runB].map((e) => list.find((r) => r.name === e.value))
      if (x && y) [runA.value, runB.value] = olderFirst(x, y).map((r) => r.name) as [string, string]
      history.replaceState(null, '', compareAddress(runA.value, runB.value))
      await Promise.all([cells(runA, cellA, 0), cells(runB, cellB, 1)])
      await show()
    }
    const show = async () => {
      replace(out, h('p', { class: 'muted' }, 'Comparing.'))
      try {
        const c = await compare(runA.value, runB.value, cellA.value, cellB.value)
        if (closed) return
        clear()
        replace(out, result(c, drawn))
      } catch (e) {
        if (!closed) replace(out, trouble(e))
      }
    }
    for (const e of [runA, runB]) e.addEventListener('change', () => void refresh())
    for (const e of [cellA, cellB]) e.addEventListener('change', () => void show())
    form.addEventListener('submit', (e) => e.preventDefault())
    replace(form, [['A', runA, cellA], ['B', runB, cellB]].map(([name, run, cell]) => h('div', { class: 'controls' },
      h('b', { class: `side ${String(name).toLowerCase()}` }, String(name)), run as Node, cell as Node)),
      h('p', { class: 'small muted' }, 'The older run is A, the newer B.'))
    await refresh()
  }

  build().catch((e: unknown) => { if (!closed) replace(out, trouble(e)) })
  return { title: 'Compare', element, close() { closed = true; clear() } }
}

/** mostCourses is the number of pairs whose time series are loaded and drawn. */
const mostCourses = 6

/** operationOf returns the operation of a metric, such as read for read.p95; '' for none. */
export function operationOf(m: Metric): string {
  const [head, ...rest] = m.name.split('.')
  return /^(mean|p50|p95|p99|p999|max|count|failed)$/.test(rest.at(-1) ?? '') && head !== 'events' ? head! : ''
}

/** chosen filters metrics: leading ones or all, without duplicates, and latencies of one operation or all. */
export function chosen(metrics: Metric[], all: boolean, operation: string): Metric[] {
  return metrics.filter((m) => !m.same_as && (all || m.leading) && (!operation || !operationOf(m) || operationOf(m) === operation))
}

function result(c: Comparison, drawn: (() => void)[]): HTMLElement[] {
  return [
    ...(c.notes ?? []).map((n) => h('p', { class: 'note' }, n)),
    ...(c.pairs ?? []).map((p, i) => {
      const over = i < mostCourses ? courses(p) : undefined
      if (over) drawn.push(over.close)
      const box = h('input', { type: 'checkbox', onchange: () => fill() })
      const body = h('tbody')
      const kinds = [...new Set(p.metrics.map(operationOf).filter(Boolean))]
      const pick = h('select', { 'aria-label': 'Operation', onchange: () => fill() }, h('option', { value: '' }, 'every operation'),
        kinds.map((k) => h('option', { value: k }, k)))
      const fill = () => replace(body, chosen(p.metrics, box.checked, pick.value).map(row))
      fill()
      const side = (name: string, x: typeof p.a) => h('div', {}, h('b', { class: `side ${name.toLowerCase()}` }, name),
        h('div', {}, h('a', { href: reportOf(x.run), target: '_blank', rel: 'noopener' }, x.run),
        h('p', { class: 'tiles' }, parameters(x.parameters)),
        h('p', { class: 'small muted' }, `${plural(x.trials.length, 'repetition')}${x.suspect ? ', all suspect' : ''}`)))
      return h('section', { class: 'card' }, h('div', { class: 'sides' }, side('A', p.a), side('B', p.b)),
        h('div', { class: 'controls' }, kinds.length > 1 ? h('label', { class: 'field' }, 'Latency of', pick) : null,
          h('label', { class: 'field' }, box, 'every metric')),
        (p.censored ?? []).map((x) => h('p', { class: 'note' }, x)),
        wide('Metrics of both sides', h('table', { class: 'metrics' }, h('caption', { class: 'visually-hidden' }, 'Metrics of both sides'),
          h('thead', {}, h('tr', {},
          ['Metric', 'A', 'B', 'Change', 'Repetitions', 'g', 'p'].map((x, i) =>
          h('th', { scope: 'col', class: i > 0 && i !== 4 ? 'num' : '' }, x)))), body)),
        h('p', { class: 'small muted' },
          'Mean ± half-width of its 95 % interval over repetitions; g: Hedges’ g, positive where B is higher; p: permutation ' +
            'test. Of twenty equal metrics, about one has p below 0.05 by chance.'),
        p.links?.length ? wide('Round trips of links',
          h('table', { class: 'metrics' }, h('caption', {}, 'Round trips of emulated and real links'),
          h('thead', {}, h('tr', {}, ['Link', 'A', 'B', 'B/A'].map((x, i) => h('th', { scope: 'col', class: i > 0 ? 'num' : '' }, x)))),
          h('tbody', {}, p.links.map((l) => h('tr', {}, h('th', { scope: 'row' }, `${l.from} – ${l.to}`),
            h('td', { class: 'num' }, linkFigure(l.a)), h('td', { class: 'num' }, linkFigure(l.b)),
            h('td', { class: 'num' }, l.ratio ? figure(l.ratio) : '–')))))) : null,
        over?.element ?? null)
    }),
  ]
}

/** linkFigure formats the measurements of a link on one side. */
export function linkFigure(f: LinkFigure): string {
  if (!f.rtt_ms) return 'no answer'
  const ms = units.milliseconds.write
  return `${ms(f.rtt_ms)}, p99 ${ms(f.rtt_p99_ms)}, ${f.real ? `${percent(f.loss ?? 0)} lost, real` : `set to ${ms(f.set_rtt_ms ?? 0)}`}`
}

function row(m: Metric): HTMLElement {
  const value = (f: SideFigures) => [write(f.mean, m.unit),
    f.ci95 !== undefined ? h('span', { class: 'muted' }, ` ± ${write(f.ci95, m.unit)}`) : null]
  const sure = m.p !== undefined && m.p < 0.05
  return h('tr', { title: m.sentence }, h('th', { scope: 'row' }, m.name), h('td', { class: 'num' }, value(m.a)),
    h('td', { class: 'num' }, value(m.b)),
    h('td', { class: `num${sure ? ' sure' : ''}` },
      m.change === undefined ? '–' : `${m.change > 0 ? '+' : m.change < 0 ? '−' : ''}${figure(Math.abs(m.change * 100))} %`),
    h('td', {}, strip(m)), h('td', { class: 'num' }, m.hedges_g === undefined ? '–' : figure(m.hedges_g)),
    h('td', { class: `num${sure ? ' sure' : ''}` }, m.p === undefined ? '–' : figure(m.p)))
}
