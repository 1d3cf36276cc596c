// A cloud as a map shows it: places, and what joins each two of them, as events leave it.
import type { Band, Cloud } from '../data/document'
import { inForce } from './bands'

/** State of a place or a link: as set, changed by an event, partly down, down. */
export type State = 'up' | 'changed' | 'partly' | 'down'

export interface Place { name: string; nodes: number[]; lat?: number; lon?: number; client: boolean }
/** Pair is all links between two places. */
export interface Pair { a: number; b: number; links: number[]; rtt: number }
export interface Plan { places: Place[]; pairs: Pair[]; located: boolean }

/** planOf takes sites as places; of one site its nodes. */
export function planOf(c: Cloud): Plan {
  const sites = c.sites ?? []
  const nodes = c.nodes ?? []
  const bySite = sites.length > 1
  const places: Place[] = bySite
    ? sites.map((s) => ({ name: s.name, nodes: [], client: false, ...(s.located ? { lat: s.lat ?? 0, lon: s.lon ?? 0 } : {}) }))
    : nodes.map((n) => ({ name: n.name, nodes: [], client: n.role === 'client' }))
  nodes.forEach((n, i) => {
    const p = places[bySite ? n.site : i]
    p?.nodes.push(i)
    if (p && n.role === 'client') p.client = true
  })
  const of = (node: number) => (bySite ? nodes[node]?.site ?? 0 : node)
  const pairs = new Map<string, Pair>()
  ;(c.links ?? []).forEach((l, i) => {
    const [a, b] = [of(l.a), of(l.b)].sort((x, y) => x - y) as [number, number]
    if (a === b) return
    const p = pairs.get(`${a}/${b}`)
    if (p) {
      p.links.push(i)
      p.rtt = Math.min(p.rtt, l.rtt_ms)
    } else pairs.set(`${a}/${b}`, { a, b, links: [i], rtt: l.rtt_ms })
  })
  return { places, pairs: [...pairs.values()], located: places.length > 0 && places.every((p) => p.lat !== undefined) }
}

const downLinks = new Set(['link_down', 'link_flap', 'partition'])
const changedLinks = new Set(['latency', 'bandwidth', 'loss', 'jitter', 'network_load'])
const downNodes = new Set(['kill', 'stop', 'pause', 'leave'])
const changedNodes = new Set(['cpu', 'memory', 'disk_slow', 'disk_full', 'clock_skew', 'network_load', 'restart', 'join', 'start', 'resume'])

export interface Weather { places: State[]; pairs: State[] }

/** weather is the state of places and pairs at a moment. */
export function weather(c: Cloud, plan: Plan, bands: Band[], t: number): Weather {
  const down = new Set<string>()
  const changed = new Set<string>()
  const repaired = new Set<string>()
  for (const b of bands) {
    // A member that left stays away although its band, the change itself, is over.
    const left = b.kind === 'leave' && b.from <= t
    const back = (b.kind === 'join' || b.kind === 'start' || b.kind === 'resume' || b.text.endsWith(', reverted')) && (b.to ?? Infinity) <= t
    for (const x of b.targets ?? []) {
      if (b.kind === 'link_up' && b.from <= t) repaired.add(x)
      else if (back) down.delete(x)
      else if (left || (inForce(b, t) && (downLinks.has(b.kind) || downNodes.has(b.kind)))) {
        down.add(x)
        repaired.delete(x)
      } else if (inForce(b, t) && (changedLinks.has(b.kind) || changedNodes.has(b.kind))) changed.add(x)
    }
  }
  for (const x of repaired) down.delete(x)
  const nodes = c.nodes ?? []
  const links = c.links ?? []
  const sum = (names: string[]): State => {
    const gone = names.filter((n) => down.has(n)).length
    if (names.length > 0 && gone === names.length) return 'down'
    if (gone > 0) return 'partly'
    return names.some((n) => changed.has(n)) ? 'changed' : 'up'
  }
  return {
    places: plan.places.map((p) => sum(p.nodes.map((n) => nodes[n]?.name ?? ''))),
    pairs: plan.pairs.map((p) => sum(p.links.map((l) => links[l]?.id ?? ''))),
  }
}

/** stateText says a state in words. */
export function stateText(s: State): string {
  return { up: 'as set', changed: 'changed by an event', partly: 'partly down', down: 'down' }[s]
}
