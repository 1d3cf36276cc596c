// The model of a map: places, connections, and their state after events.
import type { Band } from '../go/series'
import type { Cloud } from '../go/webdata'
import { inForce } from './bands'
import { touched } from './effect'

/** State of a place or a link: as set, changed by an event, partly down, down. */
export type State = 'up' | 'changed' | 'partly' | 'down'

export interface Place { name: string; nodes: number[]; lat?: number; lon?: number; client: boolean }
/**
 * Pair is what one line shows between two places: a link, or all of them where they are too many to be told apart. It
 * is drawn so far across the middle.
 */
export interface Pair { a: number; b: number; links: number[]; rtt: number; across: number }
export interface Plan { places: Place[]; pairs: Pair[]; located: boolean }

/** Maximum number of links between two places with separate lines, and the distance of the lines. */
const mostStrands = 3
const strandGap = 7

/** planOf uses sites as places, or the nodes of a single site. */
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
    } else pairs.set(`${a}/${b}`, { a, b, links: [i], rtt: l.rtt_ms, across: 0 })
  })
  const strands = [...pairs.values()].flatMap((p) => (p.links.length > mostStrands ? [p]
    : p.links.map((l, i) => ({ ...p, links: [l], rtt: c.links![l]!.rtt_ms, across: strandGap * (i - (p.links.length - 1) / 2) }))))
  return { places, pairs: strands, located: places.length > 0 && places.every((p) => p.lat !== undefined) }
}

/** lineOf returns the ends of the line of a pair. */
export function lineOf(p: Pair, at: [number, number][]): { x1: number; y1: number; x2: number; y2: number } {
  const [x1, y1] = at[p.a]!
  const [x2, y2] = at[p.b]!
  const long = Math.hypot(x2 - x1, y2 - y1) || 1
  const [dx, dy] = [(-(y2 - y1) / long) * p.across, ((x2 - x1) / long) * p.across]
  return { x1: x1 + dx, y1: y1 + dy, x2: x2 + dx, y2: y2 + dy }
}

/** nameOf returns the name of a line, with the link if the pair has several. */
export function nameOf(plan: Plan, p: Pair, ids: string[]): string {
  const [a, b] = [plan.places[p.a]!.name, plan.places[p.b]!.name]
  return p.across ? linkName(ids[0] ?? '', a, b) : `${a} – ${b}`
}

/** linkName distinguishes the links of a pair: "A – B, link 2" for A~B#2. */
export function linkName(id: string, a: string, b: string): string {
  const own = id === `${a}~${b}` || id === `${b}~${a}` ? '' : /#(\d+)$/.test(id) ? `, link ${/#(\d+)$/.exec(id)![1]}` : `, ${id}`
  return `${a} – ${b}${own}`
}

export interface Weather { places: State[]; pairs: State[] }

/** weather is the state of places and pairs at time t. */
export function weather(c: Cloud, plan: Plan, bands: Band[], t: number): Weather {
  const down = new Set<string>()
  const changed = new Set<string>()
  for (const b of bands) {
    if (!b.effect) continue
    const { makes, settles } = b.effect
    const force = inForce(b, t)
    for (const x of touched(b)) {
      // A settled change persists: a member that left stays away after the band.
      if (makes === 'down' && (force || (settles && b.from <= t))) down.add(x)
      else if (makes === 'up' && (settles ? (b.to ?? Infinity) <= t : force)) down.delete(x)
      else if (force) changed.add(x)
    }
  }
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

/** stateText returns a state in words. */
export function stateText(s: State): string {
  return { up: 'as set', changed: 'changed by an event', partly: 'partly down', down: 'down' }[s]
}
