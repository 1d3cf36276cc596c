// Time series of a trial, with its events in the background.
import type { Band } from '../go/series'
import { clock, plural, type Unit } from '../format/format'
import type { Theme } from '../ui/theme'
import { bandText, inForce, markBands, stolen } from './bands'
import { axisStyle, frame, tip, tooltipStyle, type Spec } from './chart'
import type { Option } from './echarts'

export interface Curve {
  name: string
  values: (number | null)[]
  colour(t: Theme): string
  dashed?: boolean
  /** Curves of one stack are stacked. */
  stack?: string
  /** hidden curves can be enabled in the legend. */
  hidden?: boolean
  unit?: Unit
}

export interface Panel {
  title: string
  unit: Unit
  t: number[]
  /** first is the start of the axis, by default the first bin. */
  first?: number | undefined
  /** bin is the length of each bin in seconds; last is the end of the last bin. */
  bin: number
  last: number
  curves: Curve[]
  bands: Band[]
  /** named shows the names of events. */
  named?: boolean
  log?: boolean
  height?: number
  describe?: string
}

/** gridLeft and gridRight are equal in all panels, so that their axes align. */
export const gridLeft = 66
export const gridRight = 18

/** panel is the spec of curves over time. */
export function panel(p: Panel): Spec {
  const first = p.first ?? p.t[0] ?? 0
  return {
    title: p.title,
    unit: p.unit.name,
    describe: p.describe ?? describe(p),
    height: p.height ?? 210,
    points: p.t.length,
    option: (t) => option(p, first, t),
    table: () => ({
      columns: ['t (s)', ...p.curves.map((c) => c.name)],
      rows: p.t.map((x, i) => [x, ...p.curves.map((c) => c.values[i] ?? null)]),
    }),
  }
}

function describe(p: Panel): string {
  const parts = p.curves.slice(0, 4).map((c) => {
    const values = c.values.filter((v): v is number => v !== null)
    const unit = c.unit ?? p.unit
    return values.length ? `${c.name} from ${unit.write(Math.min(...values))} to ${unit.write(Math.max(...values))}`
      : `${c.name} without values`
  })
  const more = p.curves.length > 4 ? ` and ${p.curves.length - 4} more curves` : ''
  const events = p.bands.filter((b) => b.to !== b.from && !stolen(b)).length
  return `Over ${clock(p.last)}: ${parts.join('; ')}${more}.${events ? ` ${plural(events, 'event')}.` : ''}`
}

function option(p: Panel, first: number, t: Theme): Option {
  const axis = axisStyle(t)
  return {
    ...frame(t),
    grid: { left: gridLeft, right: gridRight, top: 34, bottom: 24 },
    legend: {
      ...(frame(t)['legend'] as object), type: 'scroll', right: 8, selected: Object.fromEntries(p.curves.map((c) => [c.name, !c.hidden])),
      pageTextStyle: { color: t.muted }, pageIconColor: t.muted,
    },
    tooltip: {
      ...tooltipStyle(t), trigger: 'axis', axisPointer: { type: 'line', lineStyle: { color: t.muted } },
      formatter: (hits: { dataIndex: number; seriesIndex: number }[]) => legend(p, hits, t),
    },
    xAxis: { ...axis, type: 'value', min: first, max: p.last, axisLabel: { ...(axis['axisLabel'] as object), formatter: clock },
      splitLine: { show: false } },
    yAxis: {
      ...axis, type: p.log ? 'log' : 'value', splitNumber: 4, axisLine: { show: false }, axisTick: { show: false },
      axisLabel: { ...(axis['axisLabel'] as object), formatter: (v: number) => p.unit.tick(v) },
    },
    dataZoom: [{ type: 'inside', xAxisIndex: 0, filterMode: 'none', zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: false,
      moveOnMouseMove: 'shift' }],
    series: p.curves.map((c, i) => ({
      type: 'line', name: c.name, showSymbol: p.t.length < 2, symbolSize: 5, sampling: 'lttb',
      data: p.t.map((x, k) => [Math.min(x + p.bin / 2, (x + p.last) / 2), p.log && !((c.values[k] ?? 0) > 0) ? null : c.values[k] ?? null]),
      lineStyle: { width: c.stack && i > 0 ? 0 : 1.6, type: c.dashed ? 'dashed' : 'solid', color: c.colour(t) },
      itemStyle: { color: c.colour(t) },
      ...(c.stack ? { stack: c.stack, areaStyle: { opacity: i > 0 ? 0.75 : 0.35 }, sampling: undefined } : {}),
      emphasis: { disabled: true },
      ...(i === 0 ? markBands(p.bands, first, p.last, t, p.named ?? false) : {}),
    })),
  }
}

function legend(p: Panel, hits: { dataIndex: number; seriesIndex: number }[], t: Theme): HTMLElement | string {
  const k = hits[0]?.dataIndex
  if (k === undefined) return ''
  const at = p.t[k] ?? 0
  const lines = hits.flatMap((h) => {
    const c = p.curves[h.seriesIndex]
    const v = c?.values[k]
    return c && v !== null && v !== undefined ? [{ colour: c.colour(t), name: c.name, value: (c.unit ?? p.unit).write(v), v }] : []
  })
  if (lines.length > 12) lines.sort((a, b) => b.v - a.v).splice(12)
  const now = p.bands.filter((b) => inForce(b, at)).slice(0, 4).map(bandText)
  return tip(p.bin > 1 ? `${clock(at)} to ${clock(at + p.bin)}` : clock(at), lines, now.join(' · ') || undefined)
}

