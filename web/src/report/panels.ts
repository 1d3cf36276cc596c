// The time series of a trial: one panel for each figure, on a common time axis.
import type { Band, NodeUse, Rates } from '../go/series'
import type { Detail } from '../go/webdata'
import { nodeColours, type NodeColour } from '../charts/colour'
import type { Curve, Panel } from '../charts/timeseries'
import { units, type Unit } from '../format/format'
import type { Theme } from '../ui/theme'

/** lastOf returns the end of the last bin. */
export function lastOf(d: Detail): number {
  const end = (s: { t: number[]; bin_s: number } | undefined) => (s?.t.length ? s.t.at(-1)! + s.bin_s : 0)
  return Math.max(1, end(d.timeline), d.timeline ? 0 : end(d.nodes))
}

/** panelsOf returns the panels of a trial. */
export function panelsOf(d: Detail): Panel[] {
  const bands = d.bands ?? []
  const last = lastOf(d)
  const panels = [...drivers(d, bands, last), ...rates('Goodput of each workload', d.pools, bands, last),
    ...rates('Failed operations by error class', d.errors, bands, last), ...operations(d, bands, last), ...probes(d, bands, last),
    ...network(d, bands, last), ...nodes(d, bands, last, coloursOf(d))]
  // All panels share an axis from the earliest start to the end of the driver.
  const first = Math.min(...panels.map((p) => p.t[0] ?? 0))
  return panels.map((p) => aligned(p, first))
}

/** aligned extends a panel to the common start. */
function aligned(p: Panel, first: number): Panel {
  const from = p.t[0] ?? 0
  if (from === first) return p
  return { ...p, t: [first, ...p.t], curves: p.curves.map((c) => ({ ...c, values: [null, ...c.values] })) }
}

/** rates is a panel of operations per second by name. */
function rates(title: string, r: Rates | undefined, bands: Band[], last: number): Panel[] {
  if (!r) return []
  return [{ title, unit: units.opsPerSecond, t: r.t, bin: r.bin_s, last, bands, named: true, height: 190,
    curves: r.names.map((name, i) => ({ name, values: r.rate[i] ?? [], colour: (t) => t.series[i % t.series.length]! })) }]
}

function drivers(d: Detail, bands: Band[], last: number): Panel[] {
  const s = d.timeline
  if (!s) return []
  const outcome = (name: string, values: number[], colour: (t: Theme) => string): Curve => ({ name, values, colour, stack: 'outcomes' })
  const bin = s.bin_s > 1 ? `, highest of each ${s.bin_s} s` : ''
  const latency = (name: string, values: number[], i: number, dashed: boolean): Curve =>
    ({ name, values, colour: (t) => t.series[i]!, dashed })
  const some = (values: number[]) => values.some((v) => v > 0)
  const alike = s.response_p99.every((v, i) => v === s.service_p99[i]) && s.response_p999.every((v, i) => v === s.service_p999[i])
  const response = some(s.response_p99)
  return [
    {
      title: 'Goodput and errors', unit: units.opsPerSecond, t: s.t, bin: s.bin_s, last, bands, named: true, height: 240,
      curves: [
        outcome('ok', s.ok, (t) => t.ok), outcome('failed', s.failed, (t) => t.failed), outcome('unknown', s.unknown, (t) => t.unknown),
        ...(some(s.dropped) ? [outcome('dropped', s.dropped, (t) => t.dropped)] : []),
      ],
    },
    {
      title: `Latency${bin}`, unit: { ...units.latency, name: 'logarithmic' }, t: s.t, bin: s.bin_s, last, bands, log: true, height: 250,
      curves: [
        ...(response ? [latency('response p50', s.response_p50, 0, false), latency('response p99', s.response_p99, 2, false),
          latency('response p99.9', s.response_p999, 3, false)] : []),
        ...[latency('service p50', s.service_p50, 0, true), latency('service p99', s.service_p99, 2, true),
          latency('service p99.9', s.service_p999, 3, true)]
          .map((c) => ({ ...c, hidden: response && alike })),
      ],
    },
  ]
}

/** each returns a curve for each operation, with gaps in seconds without successful operations. */
const each = (names: string[], p95: number[][]): Curve[] =>
  names.map((name, i) => ({ name, values: (p95[i] ?? []).map((v) => v || null), colour: (t) => t.series[i % t.series.length]! }))

function operations(d: Detail, bands: Band[], last: number): Panel[] {
  const o = d.operations
  if (!o) return []
  const bin = o.bin_s > 1 ? `, highest of each ${o.bin_s} s` : ''
  return [{ title: `95th and 99th percentile by operation${bin}`, unit: { ...units.latency, name: 'logarithmic' }, t: o.t, bin: o.bin_s,
    last, bands, log: true, height: 190,
    curves: [...each(o.names.map((n) => `${n} p95`), o.p95),
      ...each(o.names.map((n) => `${n} p99`), o.p99).map((c) => ({ ...c, dashed: true }))] }]
}

/** probes are shown at their start. */
function probes(d: Detail, bands: Band[], last: number): Panel[] {
  const p = d.probes
  if (!p) return []
  const failed = p.failed ? `; ${p.failed} of ${p.t.length} failed` : ''
  return [{ title: `Probes: 95th percentile of each short job${failed}`, unit: { ...units.latency, name: 'logarithmic' }, t: p.t, bin: 0,
    last, bands, named: true, log: true,
    height: 190, curves: each(p.names, p.p95) }]
}

function network(d: Detail, bands: Band[], last: number): Panel[] {
  const n = d.network
  if (!n) return []
  return [{
    title: 'Round trips between nodes', unit: units.milliseconds, t: n.t, bin: n.bin_s, last, bands, height: 190,
    curves: [
      { name: 'worst pair', values: n.worst_ms, colour: (t) => t.series[3]! },
      { name: 'mean', values: n.mean_ms, colour: (t) => t.series[0]! },
      { name: 'pairs without an answer', values: n.unreachable, colour: (t) => t.failed, unit: units.plain },
    ],
  }]
}

/** own returns true for the machine, the emulator and tunnels, which are not nodes. */
const own = (name: string) => name.startsWith('@')

/** coloursOf returns the colours of the nodes of a trial. */
export const coloursOf = (d: Detail): NodeColour => nodeColours(d.cloud?.nodes?.map((n) => n.name) ?? d.nodes?.names ?? [])

function nodes(d: Detail, bands: Band[], last: number, colour: NodeColour): Panel[] {
  const n = d.nodes
  if (!n) return []
  const more = n.hidden ? `; ${n.hidden} less busy nodes not shown` : ''
  const made = (title: string, unit: Unit, of: (u: NodeUse) => number[], machine: boolean): Panel[] => {
    const curves = n.names.flatMap((name, i): Curve[] => {
      const use = n.series[i]
      if (!use || (own(name) && !machine)) return []
      const values = of(use)
      if (!machine && !values.some((v) => v > 0)) return []
      return [{ name, values, colour: (t) => colour(name, t), dashed: own(name), hidden: name === '@host' }]
    })
    if (!curves.length) return []
    return [{ title: title + more, unit, t: n.t, bin: n.bin_s, last, bands, curves, height: 190 }]
  }
  const sum = (a: number[], b: number[]) => a.map((v, i) => v + (b[i] ?? 0))
  return [
    ...made('CPU of the nodes', units.cores, (u) => u.cpu, true),
    ...made('Memory of the nodes', units.bytes, (u) => u.memory, false),
    ...made('Disk of the nodes, read and written', units.bytesPerSecond, (u) => sum(u.read, u.wrote), false),
    ...made('Network of the nodes, received and sent', units.bytesPerSecond, (u) => sum(u.rx, u.tx), false),
  ]
}
