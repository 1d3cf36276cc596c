// The state of a running run: a snapshot from the server, updated by messages.
import { touched } from '../charts/effect'
import type { Cloud, Kind, Link, Node as LabNode, State } from '../go/live'
import type { Condition, Event as LabEvent, NodeSecond } from '../go/record'

/** Limits of the history: an hour of seconds, and for nodes the width of a sparkline. */
const keepSeconds = 3600
const keepNodeSeconds = 90

export interface Model {
  state: State
  /** history is the last seconds of each node. */
  history: Map<string, NodeSecond[]>
  links: Map<string, Link>
  over: boolean
}

export function empty(): Model {
  return { state: { run: { name: '', experiment: '', planned: 0 }, seconds: [], nodes: [], events: [], results: [], doubts: [],
    totals: { ok: 0, failed: 0, unknown: 0, dropped: 0 } }, history: new Map(), links: new Map(), over: false }
}

/** apply applies a message to the model and returns the new model. */
export function apply(m: Model, kind: Kind, data: unknown): Model {
  const s = m.state
  switch (kind) {
    case 'state': {
      const next: Model = { ...empty(), state: data as State }
      for (const row of next.state.nodes) remember(next.history, row)
      for (const l of next.state.cloud?.links ?? []) next.links.set(l.id, l)
      return next
    }
    case 'trial':
      if (data) s.trial = data as NonNullable<State['trial']>
      break
    case 'second':
      s.seconds.push(data as State['seconds'][number])
      if (s.seconds.length > 2 * keepSeconds) s.seconds.splice(0, s.seconds.length - keepSeconds)
      break
    case 'operations':
      s.operations = appendRows(s.operations, data as NonNullable<State['operations']>)
      break
    case 'pools':
      s.pools = appendRows(s.pools, data as NonNullable<State['pools']>)
      break
    case 'errors':
      s.errors = appendRows(s.errors, data as NonNullable<State['errors']>)
      break
    case 'nodes':
      for (const row of data as NodeSecond[]) remember(m.history, row)
      break
    case 'network':
      s.network = data as NonNullable<State['network']>
      break
    case 'links':
      for (const l of data as Link[]) m.links.set(l.id, l)
      break
    case 'event': {
      const e = data as LabEvent
      const at = e.id ? s.events.findIndex((x) => x.id === e.id) : -1
      if (at >= 0) s.events[at] = e
      else s.events.push(e)
      break
    }
    case 'result':
      s.results = [...s.results.filter((r) => r.id !== (data as State['results'][number]).id), data as State['results'][number]]
      break
    case 'doubts':
      s.doubts = data as State['doubts']
      break
    case 'tasks':
      s.tasks = data as NonNullable<State['tasks']>
      break
    case 'end':
      m.over = true
  }
  return m
}

/** appendRows appends rows to a list and drops the oldest beyond the limit. */
function appendRows<T>(old: T[] | undefined, rows: T[]): T[] {
  const all = [...(old ?? []), ...rows]
  return all.length > 2 * keepSeconds ? all.slice(-keepSeconds) : all
}

function remember(history: Map<string, NodeSecond[]>, row: NodeSecond): void {
  const rows = history.get(row.node) ?? []
  rows.push(row)
  if (rows.length > 2 * keepNodeSeconds) rows.splice(0, rows.length - keepNodeSeconds)
  history.set(row.node, rows)
}

/** linkCondition returns the condition of a link. */
export function linkCondition(l: Link): Condition {
  if (l.carrier_down || l.ab.down || l.ba.down) return 'down'
  return l.changed ? 'changed' : 'up'
}

/** roundTrip returns the round-trip time of a link as set, in milliseconds. */
export const roundTrip = (l: Link): number => l.ab.latency_ms + l.ba.latency_ms

/** nodeConditions returns the conditions of nodes after all events, in their order. */
export function nodeConditions(events: LabEvent[]): Map<string, Condition> {
  const out = new Map<string, Condition>()
  for (const e of events) {
    if (!e.effect || e.effect.on === 'links') continue
    const { makes, settles } = e.effect
    const force = e.state === 'begun' || e.state === 'active'
    for (const n of touched(e)) {
      if (makes === 'down' && force) out.set(n, 'down')
      else if ((makes === 'down' && e.state === 'reverted') || (makes === 'up' && e.state === 'active')) out.delete(n)
      else if (makes === 'changed' && (settles ? e.state === 'begun' : force) && out.get(n) !== 'down') out.set(n, 'changed')
    }
  }
  return out
}

/** eventsOf returns the events with effects, the newest first. */
export function eventsOf(events: LabEvent[]): LabEvent[] {
  return events.filter((e) => e.id).reverse()
}

/** nodesBySite groups nodes, in the order of the sites. */
export function nodesBySite(c: Cloud): Map<string, LabNode[]> {
  const out = new Map<string, LabNode[]>((c.sites ?? []).map((s) => [s.name, []]))
  for (const n of c.nodes ?? []) out.set(n.site, [...(out.get(n.site) ?? []), n])
  return out
}
