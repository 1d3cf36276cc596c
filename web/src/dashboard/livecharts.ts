// The curves of a running trial: goodput, latency, CPU, each second.
import { chart, type Chart, type Spec } from '../charts/chart'
import type { Option } from '../charts/echarts'
import { nodeColours } from '../charts/colour'
import { panel, type Panel } from '../charts/timeseries'
import type { Band } from '../go/series'
import { units } from '../format/format'
import type { Cloud } from '../go/live'
import { h, replace } from '../ui/dom'
import { theme } from '../ui/theme'
import type { Event as LabEvent, Moment, NodeSecond, Second } from '../go/record'
import { empty, type Model } from './model'

export interface LiveCharts {
  elements: HTMLElement[]
  /** picker selects the operation of the latency chart. */
  picker: HTMLElement
  update(m: Model): void
  /** cloud sets the colours of the nodes. */
  cloud(c: Cloud | undefined): void
  /** reach sets the number of seconds shown; 0 for all. */
  reach(seconds: number): void
  close(): void
}

/**
 * bandsOf converts events to bands behind the curves: while in force, or while settling. internal/report/series does
 * the same for finished runs.
 */
export function bandsOf(events: LabEvent[]): Band[] {
  const band = (e: LabEvent, from: Moment | undefined, to: Moment | undefined, reverts = false): Band[] => {
    if (!from) return []
    const till = to ?? (e.state === 'failed' ? from : undefined)
    return [{ name: e.name || e.kind, kind: e.kind, text: e.message, from: from.ns / 1e9, ...(till ? { to: till.ns / 1e9 } : {}),
      targets: e.targets ?? [], ...(reverts ? { reverts } : {}) }]
  }
  return events.filter((e) => e.id).flatMap((e) => (e.effect?.settles
    ? [...band(e, e.apply?.began, e.apply?.completed), ...band(e, e.revert?.began, e.revert?.completed, true)]
    : band(e, e.apply?.began, e.revert?.completed)))
}

/** stolenOf returns the seconds with CPU taken from the driver. internal/report/series does the same for finished runs. */
export function stolenOf(seconds: Second[]): Band[] {
  const out: Band[] = []
  for (const x of seconds) {
    if (!x.stolen_s) continue
    const before = out.at(-1)
    if (before?.to === x.t) before.to = x.t + 1
    else out.push({ name: 'CPU taken from the driver', kind: 'stolen', text: 'the driver could not run', from: x.t, to: x.t + 1 })
  }
  return out
}

const shownNodes = 8

/** busiest returns the nodes with the highest recent CPU usage, then the whole machine. */
export function busiest(history: Map<string, NodeSecond[]>): string[] {
  const mean = (rows: NodeSecond[]) => rows.slice(-10).reduce((n, r) => n + r.cpu_cores, 0) / Math.max(1, Math.min(10, rows.length))
  const names = [...history.keys()].filter((n) => !n.startsWith('@')).sort((a, b) => mean(history.get(b)!) - mean(history.get(a)!)
    || a.localeCompare(b))
  return [...names.slice(0, shownNodes), ...(history.has('@host') ? ['@host'] : [])]
}

/** keepLegend copies the selection of the legend to a new option. */
function keepLegend(c: Chart, option: Option): Option {
  const before = (c.instance()?.getOption() as { legend?: { selected?: Record<string, boolean> }[] } | undefined)?.legend?.[0]?.selected
  const legend = option['legend'] as { selected?: Record<string, boolean> } | undefined
  return legend && before ? { ...option, legend: { ...legend, selected: { ...legend.selected, ...before } } } : option
}

/** liveCharts creates the charts, which are empty until the first second. */
export function liveCharts(): LiveCharts {
  let model = empty()
  let colour = nodeColours([])
  let reach = 300
  let names: string[] = []
  const every = 'all operations'
  const pick = h('select', { 'aria-label': 'Operation whose latency is shown', onchange: () => api.update(model) },
    h('option', { value: every }, every))
  const picker = h('label', { class: 'field', hidden: true }, 'Latency of', pick)
  const shown = () => {
    const { seconds } = model.state
    const last = seconds.at(-1)?.t ?? 0
    return reach ? seconds.filter((x) => x.t > last - reach) : seconds
  }
  // All panels share the time axis of the driver, even if nodes were sampled for longer.
  const span = () => ({ first: shown()[0]?.t, last: (model.state.seconds.at(-1)?.t ?? 0) + 1 })
  const base = (title: string, curves: Panel['curves'], rows: Second[], unit: Panel['unit'], log = false): Panel => ({
    title, unit, log, bin: 1, t: rows.map((x) => x.t), ...span(), curves, bands: [...stolenOf(rows), ...bandsOf(model.state.events)],
    named: true, height: 230,
  })
  const rate = (n: number, x: Second) => n / Math.max(0.001, x.length_s)

  /** named returns a curve of operations per second for each name. */
  function named<T extends { t: number }>(all: T[], rows: Second[], name: (x: T) => string, count: (x: T) => number): Panel['curves'] {
    const by = new Map<string, Map<number, number>>()
    for (const x of all) {
      const counts = by.get(name(x)) ?? new Map<number, number>()
      counts.set(x.t, (counts.get(x.t) ?? 0) + count(x))
      by.set(name(x), counts)
    }
    return [...by.keys()].sort().map((n, i) =>
      ({ name: n, dashed: true, values: rows.map((x) => rate(by.get(n)!.get(x.t) ?? 0, x)),
      colour: (t) => t.series[i % t.series.length]! }))
  }

  function goodput(): Panel {
    const rows = shown()
    const of = (k: 'ok' | 'failed' | 'unknown' | 'dropped') => rows.map((x) => rate(x[k], x))
    return base('Operations', [
      { name: 'ok', values: of('ok'), colour: (t) => t.ok }, { name: 'failed', values: of('failed'), colour: (t) => t.failed },
      { name: 'unknown', values: of('unknown'), colour: (t) => t.unknown },
      { name: 'dropped', values: of('dropped'), colour: (t) => t.dropped },
      ...named(model.state.pools ?? [], rows, (x) => x.pool, (x) => x.ok),
      ...named(model.state.errors ?? [], rows, (x) => `${x.outcome}: ${x.class}`, (x) => x.count),
    ], rows, units.opsPerSecond)
  }

  function latency(): Panel {
    const rows = shown()
    const of = pick.value
    const each = new Map((model.state.operations ?? []).filter((x) => x.operation === of).map((x) => [x.t, x]))
    const curve = (name: string, i: number, all: (x: Second) => number, one?: 'p50_us' | 'p95_us' | 'p99_us') => ({
      name, dashed: !one, colour: (t: ReturnType<typeof theme>) => t.series[i]!,
      values: rows.map((x) => (of === every ? all(x) : one ? each.get(x.t)?.[one] ?? 0 : 0) || null),
    })
    return base(of === every ? 'Latency' : `Latency of ${of}`, [
      curve('p50', 0, (x) => x.response_p50_us, 'p50_us'), curve('p95', 2, (x) => x.response_p95_us, 'p95_us'),
      curve('p99', 1, (x) => x.response_p99_us, 'p99_us'),
      ...(of === every ? [curve('p99.9', 3, (x) => x.response_p999_us)] : []),
    ], rows, units.latency, true)
  }

  function cpu(): Panel {
    const rows = names.map((n) => new Map((model.history.get(n) ?? []).map((x) => [x.t, x.cpu_cores])))
    const t = [...new Set(rows.flatMap((r) => [...r.keys()]))].sort((a, b) => a - b)
    return {
      title: 'CPU', unit: units.cores, bin: 1, t, ...span(), bands: bandsOf(model.state.events), height: 230,
      curves: names.map((name, i) => ({
        name: name === '@host' ? 'whole machine' : name, values: t.map((x) => rows[i]!.get(x) ?? null), dashed: name === '@host',
        hidden: name === '@host',
        colour: (c) => colour(name, c),
      })),
    }
  }

  const figures = [goodput, latency, cpu].map((of): { chart: Chart; spec: Spec; curves: string } => {
    const spec: Spec = {
      ...panel(of()), option: (t) => panel(of()).option(t), table: () => panel(of()).table(),
      get title() { return of().title }, get points() { return of().t.length }, get describe() { return panel(of()).describe },
    } as Spec
    return { chart: chart(spec), spec, curves: '' }
  })

  /** fillPicker updates the operations in the picker. */
  function fillPicker(): void {
    const kinds = [every, ...[...new Set((model.state.operations ?? []).map((x) => x.operation))].sort()]
    picker.hidden = kinds.length < 3
    if (kinds.length === pick.options.length) return
    const before = pick.value
    replace(pick, kinds.map((k) => h('option', { value: k }, k)))
    pick.value = kinds.includes(before) ? before : every
  }

  const api: LiveCharts = {
    elements: figures.map((f) => f.chart.element),
    picker,
    update(m) {
      model = m
      fillPicker()
      const { seconds, pools, errors } = m.state
      if (names.length < Math.min(shownNodes + 1, m.history.size) || seconds.length % 20 === 0) names = busiest(m.history)
      for (const f of figures) {
        // The tooltip stays, unless the set of curves changes.
        const curves = f === figures[2] ? names.join('\n') : f === figures[0]
          ? [...new Set([...(pools ?? []).map((x) => x.pool), ...(errors ?? []).map((x) => x.outcome + x.class)])].sort().join('\n')
          : pick.value
        if (curves !== f.curves) f.chart.label()
        f.chart.instance()?.setOption(keepLegend(f.chart, f.spec.option(theme())), curves !== f.curves)
        f.curves = curves
      }
    },
    cloud(c) { colour = nodeColours((c?.nodes ?? []).map((n) => n.name)) },
    reach(n) {
      reach = n
      api.update(model)
    },
    close() {
      for (const f of figures) f.chart.dispose()
    },
  }
  return api
}
