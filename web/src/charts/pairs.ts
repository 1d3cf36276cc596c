// The pairs of a comparison: metrics with tests, links, and CPU use. The dashboard and pages of skerry compare show them.
import type { CPU, CPUSide, LinkFigure, Metric, Pair, Report as Comparison, SideFigures } from '../go/compare'
import { duration, figure, percent, plural, units, type Unit } from '../format/format'
import { h, replace, s } from '../ui/dom'
import { wide } from '../ui/table'
import { theme, type Theme } from '../ui/theme'
import { axisStyle, chart, frame, tip, tooltipStyle, type Spec } from './chart'
import type { Option } from './echarts'
import { gridLeft, gridRight, panel } from './timeseries'

/** parameters shows the parameters of a trial as tiles. */
export function parameters(p: Record<string, unknown> | null | undefined, leaveOut: string[] = []): HTMLElement[] {
  return Object.entries(p ?? {}).filter(([k]) => !leaveOut.includes(k)).sort(([a], [b]) => a.localeCompare(b))
    .map(([k, v]) => h('span', { class: 'parameter' }, h('span', { class: 'muted' }, `${k} `), String(v)))
}

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

/** operationOf returns the operation of a metric, such as read for read.p95; '' for none. */
export function operationOf(m: Metric): string {
  const [head, ...rest] = m.name.split('.')
  return /^(mean|p50|p95|p99|p999|max|count|failed)$/.test(rest.at(-1) ?? '') && head !== 'events' ? head! : ''
}

/** chosen filters metrics: leading ones or all, without duplicates, and latencies of one operation or all. */
export function chosen(metrics: Metric[], all: boolean, operation: string): Metric[] {
  return metrics.filter((m) => !m.same_as && (all || m.leading) && (!operation || !operationOf(m) || operationOf(m) === operation))
}

/** Pairs is a comparison on a page. */
export interface Pairs { elements: HTMLElement[]; close(): void }

/** pairs shows all pairs of a comparison. run shows the name of a run, more adds a drawing to the pair with an index. */
export function pairs(c: Comparison, run: (name: string) => Node | string,
  more: (p: Pair, i: number) => { element: HTMLElement; close(): void } | undefined = () => undefined): Pairs {
  const drawn: (() => void)[] = []
  const elements = [
    ...(c.notes ?? []).map((n) => h('p', { class: 'note' }, n)),
    ...(c.pairs ?? []).map((p, i) => {
      const over = more(p, i)
      if (over) drawn.push(over.close)
      const use = p.cpu ? usage(p.cpu).map((spec) => chart(spec)) : []
      drawn.push(...use.map((x) => () => x.dispose()))
      const box = h('input', { type: 'checkbox', onchange: () => fill() })
      const body = h('tbody')
      const kinds = [...new Set(p.metrics.map(operationOf).filter(Boolean))]
      const pick = h('select', { 'aria-label': 'Operation', onchange: () => fill() }, h('option', { value: '' }, 'every operation'),
        kinds.map((k) => h('option', { value: k }, k)))
      const fill = () => replace(body, chosen(p.metrics, box.checked, pick.value).map(row))
      fill()
      const side = (name: string, x: typeof p.a) => h('div', {}, h('b', { class: `side ${name.toLowerCase()}` }, name),
        h('div', {}, run(x.run),
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
        use.length ? h('div', { class: 'columns even' }, use.map((x) => x.element)) : null,
        p.cpu?.g_of_seconds === undefined ? null : h('p', { class: 'small muted' },
          `CPU over seconds, as in the original papers: g is ${figure(p.cpu.g_of_seconds)}; seconds of one run are not independent.`),
        over?.element ?? null)
    }),
  ]
  return { elements, close: () => drawn.splice(0).forEach((close) => close()) }
}

/** usage is the CPU use of the data nodes of both sides: over time, and its distribution over seconds. */
export function usage(c: CPU): Spec[] {
  const unit: Unit = { name: c.unit, write: (v) => `${figure(v)} ${c.unit}`, tick: (v) => figure(v) }
  const sides = [{ name: 'A', of: c.a }, { name: 'B', of: c.b }]
  const t = [...new Set(sides.flatMap((s) => s.of.curve.map((p) => p.x)))].sort((p, q) => p - q)
  const curves = sides.map((s, i) => {
    const at = new Map(s.of.curve.map((p) => [p.x, p.y]))
    return { name: s.name, values: t.map((x) => at.get(x) ?? null), colour: (x: Theme) => x.series[i]!, dashed: i > 0 }
  })
  return [
    panel({ title: 'CPU of the data nodes', unit, t, bin: 1, last: (t.at(-1) ?? 0) + 1, curves, bands: [], height: 230 }),
    {
      title: 'Distribution of CPU use', unit: `share of seconds up to this use, in ${c.unit}`, height: 230,
      describe: sides.map((s) => `${s.name}: mean ${unit.write(s.of.mean)}, SD ${unit.write(s.of.sd)}`).join('; ') + '.',
      points: c.a.cdf.length,
      option: (x) => cumulative(sides, unit, x),
      table: () => ({ columns: ['side', `CPU (${c.unit})`, 'share of seconds'],
        rows: sides.flatMap((s) => s.of.cdf.map((p) => [s.name, p.x, p.y])) }),
    },
  ]
}

function cumulative(sides: { name: string; of: CPUSide }[], unit: Unit, t: Theme): Option {
  const axis = axisStyle(t)
  const label = axis['axisLabel'] as object
  return {
    ...frame(t),
    grid: { left: gridLeft, right: gridRight, top: 34, bottom: 24 },
    tooltip: {
      ...tooltipStyle(t), trigger: 'axis', axisPointer: { type: 'line', lineStyle: { color: t.muted } },
      formatter: (hits: { seriesIndex: number; value: number[] }[]) => tip(unit.write(hits[0]?.value[0] ?? 0),
        hits.map((x) => ({ colour: t.series[x.seriesIndex]!, name: sides[x.seriesIndex]!.name, value: percent(x.value[1] ?? 0) }))),
    },
    xAxis: { ...axis, type: 'value', scale: true, axisLabel: { ...label, formatter: (v: number) => unit.tick(v) } },
    yAxis: { ...axis, type: 'value', min: 0, max: 1, axisLine: { show: false }, axisTick: { show: false },
      axisLabel: { ...label, formatter: (v: number) => percent(v) } },
    series: sides.map((s, i) => ({
      type: 'line', name: s.name, showSymbol: false, emphasis: { disabled: true }, data: s.of.cdf.map((p) => [p.x, p.y]),
      lineStyle: { width: 1.6, color: t.series[i]!, type: i > 0 ? 'dashed' : 'solid' }, itemStyle: { color: t.series[i]! },
    })),
  }
}

/** linkFigure formats the measurements of a link on one side. */
export function linkFigure(f: LinkFigure): string {
  if (!f.rtt_ms) return 'no answer'
  const ms = units.milliseconds.write
  return `${ms(f.rtt_ms)}, p99 ${ms(f.rtt_p99_ms)}, ${f.real ? `${percent(f.loss ?? 0)} lost, real` : `set to ${ms(f.set_rtt_ms ?? 0)}`}`
}

function row(m: Metric): HTMLElement {
  const value = (f: SideFigures) => h('td', { class: 'num', title: f.sd === undefined ? m.sentence : `SD ${write(f.sd, m.unit)}` },
    write(f.mean, m.unit), f.ci95 !== undefined ? h('span', { class: 'muted' }, ` ± ${write(f.ci95, m.unit)}`) : null)
  const sure = m.p !== undefined && m.p < 0.05
  return h('tr', { title: m.sentence }, h('th', { scope: 'row' }, m.name), value(m.a), value(m.b),
    h('td', { class: `num${sure ? ' sure' : ''}` },
      m.change === undefined ? '–' : `${m.change > 0 ? '+' : m.change < 0 ? '−' : ''}${figure(Math.abs(m.change * 100))} %`),
    h('td', {}, strip(m)),
    h('td', { class: 'num', title: m.g_uncorrected === undefined ? m.sentence : `uncorrected: ${figure(m.g_uncorrected)}` },
      m.hedges_g === undefined ? '–' : figure(m.hedges_g)),
    h('td', { class: `num${sure ? ' sure' : ''}` }, m.p === undefined ? '–' : figure(m.p)))
}
