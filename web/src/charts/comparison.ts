// Comparison of cells: a metric over an axis, with confidence intervals.
import type { Cell, Estimate, Metric, Run } from '../go/webdata'
import { ratio } from '../data/estimate'
import { units, type Unit } from '../format/format'
import type { Theme } from '../ui/theme'
import { axisStyle, frame, tip, tooltipStyle, type Spec } from './chart'
import type { Option } from './echarts'

/** unitOf returns the unit of a metric. */
export function unitOf(m: Metric): Unit {
  const known: Record<string, Unit> = { ops: units.opsPerSecond, us: units.latency, bytes: units.bytes, share: units.share,
    s: units.seconds, cores: units.cores }
  return known[m.unit] ?? units.plain
}

export interface Choice {
  /** axis is the index of a varying parameter. */
  axis: number
  metric: Metric
  /** base is the index of the axis value that is scaled to 1; undefined shows absolute values. */
  base?: number | undefined
  /** operation of the latency, for latency metrics. */
  operation?: string | undefined
}

/** valueOf returns the estimate of a cell. A latency is that of the selected operation, if the cell has it. */
function valueOf(cell: Cell, c: Choice): Estimate | undefined {
  if (!c.metric.latency || !c.operation) return cell.estimates[c.metric.id]
  return cell.latencies.find((l) => l.operation === c.operation)?.estimates[c.metric.id]
}

/** nameOf returns the title of a chart. */
const nameOf = (c: Choice): string => (c.metric.latency && c.operation ? `${c.operation}: ${c.metric.label.toLowerCase()}` : c.metric.label)

/** Point is one cell of a series. It has no estimate if it was not measured. */
export interface Point { cell: Cell | undefined; estimate: Estimate | undefined }
export interface Series { name: string; points: Point[] }

const separator = ', '

/** seriesOf arranges cells: a point for each value of the axis, a series for each combination of the others. */
export function seriesOf(run: Run, c: Choice): Series[] {
  const axis = run.vary[c.axis]
  if (!axis) return []
  const groups = new Map<string, Series>()
  for (const cell of run.cells) {
    const name = run.vary.flatMap((a, i) => (i === c.axis ? [] : [`${a.label} ${a.values[cell.values[i] ?? -1] ?? '–'}`])).join(separator)
    let s = groups.get(name)
    if (!s) {
      s = { name, points: axis.values.map(() => ({ cell: undefined, estimate: undefined })) }
      groups.set(name, s)
    }
    s.points[cell.values[c.axis] ?? 0] = { cell, estimate: valueOf(cell, c) }
  }
  const all = [...groups.values()]
  if (c.base === undefined) return all
  return all.map((s) => {
    const base = s.points[c.base!]?.estimate
    return { ...s, points: s.points.map((p) => ({ ...p, estimate: p.estimate && base ? ratio(p.estimate, base) : undefined })) }
  })
}

/** comparison is the spec of the chart. */
export function comparison(run: Run, c: Choice): Spec {
  const axis = run.vary[c.axis]!
  const series = seriesOf(run, c)
  const unit = c.base === undefined ? unitOf(c.metric) : units.times
  const against = c.base === undefined ? '' : `, as a multiple of ${axis.label} ${axis.values[c.base]}`
  return {
    title: `${nameOf(c)} by ${axis.label}${against}`,
    unit: unit.name,
    describe: `${series.length} series over ${axis.values.length} values of ${axis.label}; whiskers are 95 % confidence intervals.`,
    height: 340,
    points: axis.values.length,
    option: (t) => option(axis.label, axis.values, series, unit, c, t),
    table: () => ({
      columns: ['series', axis.label, `${nameOf(c)}${against} (${c.base === undefined ? c.metric.unit : '×'})`, '95 % CI half-width', 'n'],
      rows: series.flatMap((s) =>
        s.points.map((p, i) => [s.name || 'all', axis.values[i] ?? '', p.estimate?.mean ?? null, p.estimate?.half ?? null,
        p.estimate?.n ?? 0])),
    }),
  }
}

function option(label: string, values: string[], series: Series[], unit: Unit, c: Choice, t: Theme): Option {
  const axis = axisStyle(t)
  const one = series.length === 1
  return {
    ...frame(t),
    grid: { left: 70, right: 20, top: one ? 14 : 44, bottom: 46 },
    legend: { ...(frame(t)['legend'] as object), show: !one, type: 'scroll', pageTextStyle: { color: t.muted }, pageIconColor: t.muted,
      data: series.map((s) => s.name) },
    tooltip: {
      ...tooltipStyle(t), trigger: 'axis', axisPointer: { type: 'shadow', shadowStyle: { color: t.faint, opacity: 0.6 } },
      formatter: (hits: { dataIndex: number }[]) => legend(label, values, series, unit, hits[0]?.dataIndex ?? 0, t),
    },
    xAxis: { ...axis, type: 'category', data: values, name: label, nameLocation: 'middle', nameGap: 30,
      axisLabel: { ...(axis['axisLabel'] as object), interval: 0 } },
    yAxis: {
      ...axis, type: 'value', min: 0, axisLine: { show: false }, axisTick: { show: false }, splitNumber: 5,
      axisLabel: { ...(axis['axisLabel'] as object), formatter: (v: number) => unit.tick(v) },
    },
    series: series.flatMap((s, i) => {
      const colour = t.series[i % t.series.length]!
      return [
        {
          type: 'bar', name: s.name, barMaxWidth: 46, barGap: '18%', itemStyle: { color: colour, borderRadius: [3, 3, 0, 0] },
          emphasis: { disabled: true },
          data: s.points.map((p) => (p.estimate ? { value: p.estimate.mean, itemStyle: { opacity: p.cell?.weak ? 0.45 : 0.88 } } : null)),
          ...(i === 0 && c.base !== undefined
            ? { markLine: { silent: true, symbol: 'none', label: { show: false }, lineStyle: { color: t.muted, type: 'dashed' },
              data: [{ yAxis: 1 }] } } : {}),
        },
        whiskers(s, i, series.length, t),
      ]
    }),
  }
}

/** whiskers draws the intervals of one series over its bars. */
function whiskers(s: Series, place: number, of: number, t: Theme): Record<string, unknown> {
  return {
    type: 'custom', name: s.name, silent: true, z: 5, tooltip: { show: false },
    data: s.points.flatMap((p, i) =>
      (p.estimate?.half ? [[i, Math.max(0, p.estimate.mean - p.estimate.half), p.estimate.mean + p.estimate.half]] : [])),
    encode: { x: 0, y: [1, 2] },
    renderItem: (_: unknown, api: {
      value(i: number): number; coord(p: number[]): number[]; barLayout(o: object): { offsetCenter: number; width: number }[]
    }) => {
      const layout = api.barLayout({ barMaxWidth: 46, barGap: '18%', count: of })[place]
      const lo = api.coord([api.value(0), api.value(1)])
      const hi = api.coord([api.value(0), api.value(2)])
      const x = (lo[0] ?? 0) + (layout?.offsetCenter ?? 0)
      const cap = Math.min(7, (layout?.width ?? 14) / 3)
      const line = (x1: number, y1: number, x2: number, y2: number) =>
        ({ type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: t.text, lineWidth: 1.4 } })
      return { type: 'group', children: [line(x, lo[1]!, x, hi[1]!), line(x - cap, lo[1]!, x + cap, lo[1]!),
        line(x - cap, hi[1]!, x + cap, hi[1]!)] }
    },
  }
}

/** withInterval formats a mean with its half-width. */
export function withInterval(e: Estimate, unit: Unit): string {
  if (!e.half) return `${unit.write(e.mean)}${e.n === 1 ? ' (one repetition)' : ''}`
  const mean = unit.write(e.mean)
  const half = unit.write(e.half)
  const suffix = (text: string) => text.slice(text.lastIndexOf(' '))
  const both = mean.includes(' ') && suffix(mean) === suffix(half) ? mean.slice(0, mean.lastIndexOf(' ')) : mean
  return `${both} ± ${half}${e.within ? ' (within the trial)' : ''}`
}

function legend(label: string, values: string[], series: Series[], unit: Unit, i: number, t: Theme): HTMLElement {
  const lines = series.flatMap((s, k) => {
    const p = s.points[i]
    const weak = p?.cell?.weak ? ' · suspect' : ''
    return p?.estimate ? [{ colour: t.series[k % t.series.length]!, name: s.name || 'mean', value: withInterval(p.estimate, unit) + weak }]
      : []
  })
  return tip(`${label} ${values[i] ?? ''}`, lines.slice(0, 16), lines.length ? undefined : 'not measured')
}
