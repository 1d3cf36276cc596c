// Latency: its distribution with a logarithmic tail, and its heat map over time.
import type { Band, Curve, Heat } from '../go/series'
import { clock, duration, percent, short, thousands, units } from '../format/format'
import type { Theme } from '../ui/theme'
import { stolen } from './bands'
import { axisStyle, frame, tip, tooltipStyle, type Spec } from './chart'
import type { Option } from './echarts'
import { gridLeft, gridRight } from './timeseries'

/** quantileName names the quantile with a given tail: p50, p99.9. */
export function quantileName(tail: number): string {
  if (tail <= 0) return 'max'
  return `p${Number(((1 - tail) * 100).toFixed(6))}`
}

/** distribution draws latency over the share of slower operations, on a logarithmic axis. */
export function distribution(all: Curve[]): Spec {
  const curves = all.filter((c) => c.clock === 'response'
    || !all.some((o) => o.clock === 'response' && o.operation === c.operation && String(o.us) === String(c.us)))
  const smallest = Math.min(...curves.flatMap((c) => c.tail.filter((x) => x > 0)))
  const end = Math.pow(10, Math.floor(Math.log10(smallest || 1e-3)))
  const nameOf = (c: Curve) => `${c.operation}, ${c.clock} time`
  return {
    title: 'Latency distribution',
    unit: 'latency by percentile, logarithmic tail',
    describe: curves.map((c) =>
      `${nameOf(c)}: ${thousands(c.count)} operations, median ${duration(at(c, 0.5))}, p99 ${duration(at(c, 0.01))}`).join('; ') + '.',
    height: 320,
    points: Math.max(0, ...curves.map((c) => c.tail.length)),
    option: (t) => drawDistribution(curves, nameOf, end, t),
    table: () => ({
      columns: ['operation', 'clock', 'percentile', 'latency (µs)'],
      rows: curves.flatMap((c) => c.tail.map((x, i) => [c.operation, c.clock, Number(((1 - x) * 100).toFixed(7)), c.us[i] ?? null])),
    }),
  }
}

function at(c: Curve, tail: number): number {
  const i = c.tail.findIndex((x) => x <= tail * 1.0001)
  return c.us[i < 0 ? c.us.length - 1 : i] ?? 0
}

function drawDistribution(curves: Curve[], nameOf: (c: Curve) => string, end: number, t: Theme): Option {
  const axis = axisStyle(t)
  const operations = [...new Set(curves.map((c) => c.operation))]
  const colour = (c: Curve) => t.series[operations.indexOf(c.operation) % t.series.length]!
  return {
    ...frame(t),
    grid: { left: gridLeft, right: gridRight + 20, top: 44, bottom: 44 },
    tooltip: {
      ...tooltipStyle(t), trigger: 'axis', axisPointer: { type: 'line', lineStyle: { color: t.muted } },
      formatter: (hits: { value: number[] }[]) => {
        const tail = hits[0]?.value[0] ?? 1
        return tip(quantileName(tail), curves.map((c) => ({ colour: colour(c), name: nameOf(c), value: duration(at(c, tail)) })))
      },
    },
    legend: { ...(frame(t)['legend'] as object), type: 'scroll' },
    xAxis: {
      ...axis, type: 'log', inverse: true, min: end, max: 1, name: 'percentile', nameLocation: 'middle', nameGap: 28,
      axisLabel: { ...(axis['axisLabel'] as object), formatter: (v: number) => (v >= 0.999 ? 'p0' : quantileName(v)) },
    },
    yAxis: { ...axis, type: 'log', axisLine: { show: false },
      axisLabel: { ...(axis['axisLabel'] as object), formatter: (v: number) => units.latency.tick(v) },
      min: (e: { min: number }) => Math.pow(10, Math.floor(Math.log10(Math.max(1, e.min)))) },
    series: curves.map((c) => ({
      type: 'line', name: nameOf(c), showSymbol: false, emphasis: { disabled: true },
      data: c.tail.map((x, i) => [Math.max(x, end), Math.max(1, c.us[i] ?? 1)]),
      lineStyle: { width: 1.8, color: colour(c), type: c.clock === 'service' ? 'dashed' : 'solid' }, itemStyle: { color: colour(c) },
    })),
  }
}

/** heatmap draws the number of operations by time and latency. */
export function heatmap(h: Heat, bands: Band[], last: number): Spec {
  const most = Math.max(1, ...h.counts.flat())
  const total = h.counts.flat().reduce((a, b) => a + b, 0)
  return {
    title: 'Latency over time',
    unit: `operations by ${h.clock} time; darker is more`,
    describe: `${thousands(total)} operations in ${h.t.length} columns of ${clock(h.bin_s)} and ${h.edges.length - 1} bands of ` +
      `latency, from ${duration(h.edges[0] ?? 0)} to ${duration(h.edges.at(-1) ?? 0)}.`,
    height: 300,
    points: h.t.length,
    option: (t) => drawHeat(h, bands, last, most, t),
    table: () => ({
      columns: ['t (s)', ...h.edges.slice(0, -1).map((e, j) => `${duration(e)} – ${duration(h.edges[j + 1] ?? e)}`)],
      rows: h.t.map((x, i) => [x, ...(h.counts[i] ?? [])]),
    }),
  }
}

function drawHeat(h: Heat, bands: Band[], last: number, most: number, t: Theme): Option {
  const axis = axisStyle(t)
  const cells = h.counts.flatMap((column, i) => column.flatMap((n, j) => (n > 0 ? [[i, j, Math.log10(n + 1), n]] : [])))
  const starts = bands.filter((b) => !stolen(b) && b.to !== b.from && b.state !== 'skipped' && b.from >= 0 && b.from < last)
  const column = (time: number) => Math.max(0, h.t.findLastIndex((x) => x <= time))
  return {
    ...frame(t),
    grid: { left: gridLeft, right: gridRight, top: 12, bottom: 56 },
    legend: { show: false },
    tooltip: {
      ...tooltipStyle(t), trigger: 'item',
      formatter: (p: { value: number[] }) => {
        const [i, j, , n] = p.value as [number, number, number, number]
        const all = (h.counts[i] ?? []).reduce((a, b) => a + b, 0)
        return tip(clock(h.t[i] ?? 0), [
          { name: `${duration(h.edges[j] ?? 0)} to ${duration(h.edges[j + 1] ?? 0)}`, value: `${units.count.write(n)} operations` },
          { name: 'of that time', value: percent(n / Math.max(1, all)) },
        ])
      },
    },
    xAxis: { ...axis, type: 'category', data: h.t.map((x) => clock(x)), splitLine: { show: false } },
    yAxis: { ...axis, type: 'category', data: h.edges.slice(0, -1).map((e) => duration(e)), axisLine: { show: false },
      axisTick: { show: false }, axisLabel: { ...(axis['axisLabel'] as object), interval: Math.ceil(h.edges.length / 10) - 1 } },
    visualMap: {
      dimension: 2, min: 0, max: Math.log10(most + 1), calculable: false, orient: 'horizontal', left: 'center', bottom: 0, itemHeight: 120,
      itemWidth: 10,
      text: [`${short(most)} operations`, '0'], textStyle: { color: t.muted, fontSize: 11 }, inRange: { color: t.heat }, show: true,
      hoverLink: false,
      formatter: (v: number) => short(Math.pow(10, v) - 1),
    },
    series: [{
      type: 'heatmap', data: cells, progressive: 0, emphasis: { disabled: true }, itemStyle: { borderWidth: 0 },
      markLine: {
        silent: true, symbol: 'none', label: { show: false }, lineStyle: { color: t.bandLine, type: 'dashed' },
        data: starts.slice(0, 60).map((b) => ({ xAxis: column(b.from) })),
      },
    }],
  }
}
