// The map of a running lab: sites sized by their traffic, and links.
import { nodeColours } from '../charts/colour'
import { land } from '../charts/land'
import { lineOf, nameOf, planOf, type Plan } from '../charts/cloud'
import { projectionOf, type Projection } from '../charts/projection'
import { figure, units } from '../format/format'
import { h, replace, s } from '../ui/dom'
import { onTheme, theme, type Theme } from '../ui/theme'
import type { Cloud, Link } from '../go/live'
import type { Condition, NodeSecond } from '../go/record'
import { linkCondition, roundTrip } from './model'

export interface LiveMap {
  element: HTMLElement
  /** links draws the current state of the links. */
  links(all: Map<string, Link>): void
  /** nodes draws the conditions of nodes and their usage in the last second. */
  nodes(conditions: Map<string, Condition>, last: Map<string, NodeSecond>): void
  close(): void
}

export interface Picked { links: Link[]; nodes: string[]; name: string }

const width = 1000
const highest = 420
const mostLines = 1200
const mostLabels = 40

/** liveMap draws a cloud. picked is called with a selected site or link. */
export function liveMap(cloud: Cloud, picked: (p: Picked) => void): LiveMap {
  const nodes = cloud.nodes ?? []
  const sites = cloud.sites ?? []
  const siteAt = new Map(sites.map((x, i) => [x.name, i]))
  const nodeAt = new Map(nodes.map((x, i) => [x.name, i]))
  const all = cloud.links ?? []
  const plan: Plan = planOf({
    sites: sites.map((x) => ({ name: x.name, lat: x.lat, lon: x.lon, located: x.located })),
    nodes: nodes.map((n) => ({ name: n.name, site: siteAt.get(n.site) ?? 0, role: n.role })),
    links: all.map((l) => ({ id: l.id, a: nodeAt.get(l.a) ?? 0, b: nodeAt.get(l.b) ?? 0, rtt_ms: roundTrip(l) })),
  })
  const nodeColour = nodeColours(nodes.map((n) => n.name))
  const view: Projection = projectionOf(plan, width, highest)
  let links = new Map(all.map((l) => [l.id, l]))
  let conditions = new Map<string, Condition>()
  let last = new Map<string, NodeSecond>()
  let busiest = 1
  let chosen = -1

  let names = room()
  const lines: { pair: number; line: SVGElement; label: SVGElement; back: SVGElement }[] = []
  const halos: SVGElement[] = []
  const dots: SVGElement[] = []
  const drawing = s('svg',
    { viewBox: `0 0 ${width} ${view.height}`, role: 'group',
    'aria-label': `Map: ${plan.places.length} places, ${plan.pairs.length} connections` })
  const hint = h('p', { class: 'maphint muted' })
  const key = h('p', { class: 'key' },
    [['', 'link as set'], ['changed', 'changed'], ['down', 'cut']].map(([kind, text]) =>
    h('span', {}, h('i', { class: `mark ${kind}`.trim() }), text!)), h('span', {}, 'labels on changed links: round trip'))
  const element = h('div', { class: 'livemap' }, drawing, key, hint)

  const trafficOf = (node: string) => (last.get(node)?.rx_bytes ?? 0) + (last.get(node)?.tx_bytes ?? 0)
  const linksOf = (pair: number): Link[] => plan.pairs[pair]!.links.map((i) => links.get(all[i]!.id) ?? all[i]!)
  const nodesOf = (place: number): string[] => plan.places[place]!.nodes.map((i) => nodes[i]!.name)
  const pairName = (pair: number) => nameOf(plan, plan.pairs[pair]!, linksOf(pair).map((l) => l.id))

  function conditionOf(pair: number): Condition {
    const c = linksOf(pair).map(linkCondition)
    return c.every((x) => x === 'down') ? 'down' : c.some((x) => x !== 'up') ? 'changed' : 'up'
  }

  function placeCondition(place: number): Condition {
    const c = nodesOf(place).map((n) => conditions.get(n) ?? 'up')
    return c.length > 0 && c.every((x) => x === 'down') ? 'down' : c.some((x) => x !== 'up') ? 'changed' : 'up'
  }

  function text(pair: number): string {
    const c = conditionOf(pair)
    const rtts = linksOf(pair).filter((l) => linkCondition(l) !== 'down').map(roundTrip)
    return c === 'down' ? 'cut' : units.milliseconds.write(Math.min(...rtts))
  }

  function showHint(): void {
    if (chosen < 0) {
      hint.textContent = 'Circle size: traffic of the site. Select a site to see its latencies; select a site or a link to fire an event.'
      return
    }
    const of = nodesOf(chosen).map((n) =>
      `${n}: ${figure(last.get(n)?.cpu_cores ?? 0)} cores, ${units.bytesPerSecond.write(trafficOf(n))}`)
    const more = of.length > 4 ? ` · ${of.length - 4} more nodes` : ''
    hint.textContent = `${plan.places[chosen]!.name} · ${of.slice(0, 4).join(' · ')}${more}`
  }

  function draw(t: Theme): void {
    lines.length = halos.length = dots.length = 0
    const ranked = plan.pairs.map((p, i) => ({ p, i })).sort((x, y) => x.p.rtt - y.p.rtt).slice(0, mostLines)
    const few = ranked.length <= 200
    const joined = ranked.map(({ p, i }) => {
      const ends = lineOf(p, view.at)
      const line = s('line', { ...ends })
      const back = s('rect', { rx: 4, height: 20, fill: t.surface, 'fill-opacity': 0.9, visibility: 'hidden' })
      const label = s('text', { 'text-anchor': 'middle', 'dominant-baseline': 'central', class: 'rtt', visibility: 'hidden' })
      lines.push({ pair: i, line, back, label })
      const name = pairName(i)
      return few ? s('g', { class: 'link', tabindex: 0, role: 'button', 'aria-label': `Link ${name}`,
        ...press(() => picked({ links: linksOf(i), nodes: [], name })) },
        s('line', { ...ends, class: 'hit' }), s('title', {}, name), line) : line
    })
    const big = plan.places.length > 200 ? 2.5 : plan.places.length > 60 ? 4 : 7
    names = room()
    for (const [x, y] of view.at) names.reserve(x - big - 2, y - big - 2, 2 * big + 4, 2 * big + 4)
    const places = plan.places.map((p, i) => {
      const [cx, cy] = view.at[i]!
      const halo = s('circle', { cx, cy, r: big, class: 'halo' })
      const dot = s('circle', { cx, cy, r: p.client ? big + 3 : big, class: 'site', stroke: t.surface, 'stroke-width': 2 })
      halos.push(halo)
      dots.push(dot)
      const choose = () => { chosen = chosen === i ? -1 : i; paint(); picked({ links: [], nodes: nodesOf(i), name: p.name }) }
      return s('g', { class: 'place', tabindex: plan.places.length <= 200 ? 0 : -1, role: 'button', 'aria-label': `Site ${p.name}`,
        ...press(choose) },
        s('title', {}, p.name), halo, dot, plan.places.length <= 120 ? placeName(p.client ? `${p.name} (client)` : p.name, cx, cy, big)
          : null)
    })
    drawing.replaceChildren()
    for (const e of [coast(t), ...joined, ...places, ...lines.flatMap((l) => [l.back, l.label])]) if (e) drawing.append(e)
    paint()
  }

  /** placeName returns the name next to a place, or null if there is no room. */
  function placeName(name: string, cx: number, cy: number, r: number): SVGElement | null {
    const text = name.length > 26 ? `${name.slice(0, 25)}…` : name
    const w = text.length * 8.2
    for (const [dx, dy, anchor] of [[-w / 2, -r - 21, 'middle'], [r + 6, -9, 'start'], [-w - r - 6, -9, 'end'], [-w / 2, r + 4, 'middle'],
      [r + 2, r, 'start'], [r + 2, -r - 20, 'start'], [-w - r, r, 'end']] as const) {
      const [x, y] = [cx + dx, cy + dy]
      if (x < 0 || x + w > width || y < 0 || y + 18 > view.height || !names.reserve(x, y, w, 18)) continue
      return s('text', { x: anchor === 'middle' ? cx : anchor === 'start' ? x : x + w, y: y + 14, 'text-anchor': anchor, class: 'name' },
        text)
    }
    return null
  }

  function press(f: () => void): Record<string, (e: KeyboardEvent) => void> {
    return {
      onclick: () => f(),
      onkeydown: (e: KeyboardEvent) => {
        if (e.key !== 'Enter' && e.key !== ' ') return
        e.preventDefault()
        f()
      },
    }
  }

  function coast(t: Theme): SVGElement | null {
    if (!view.project) return null
    const ring = (shift: number) =>
      land().map((r) => 'M' + r.map(([lon, lat]) =>
      view.project!(lon + shift, lat).map((v) => v.toFixed(1)).join(',')).join('L') + 'Z').join('')
    return s('path', { d: ring(0) + ring(360), fill: t.faint, stroke: t.line, 'stroke-width': 0.6, 'pointer-events': 'none' })
  }

  function paint(): void {
    const t = theme()
    const stroke: Record<Condition, string> = { up: t.ok, changed: t.unknown, down: t.failed }
    const longest = Math.max(1, ...plan.pairs.map((p) => p.rtt))
    let labels = 0
    const taken = names.copy()
    for (const { pair, line, label, back } of lines) {
      const p = plan.pairs[pair]!
      const c = conditionOf(pair)
      const mine = chosen >= 0 && (p.a === chosen || p.b === chosen)
      line.setAttribute('stroke', stroke[c])
      line.setAttribute('stroke-width', String(c === 'up' ? 0.8 + 1.8 * (1 - p.rtt / longest) : 2.4))
      line.setAttribute('stroke-opacity', c !== 'up' ? '0.95' : mine ? '0.9' : chosen >= 0 ? '0.12' : lines.length > 300 ? '0.12' : '0.32')
      line.setAttribute('stroke-dasharray', c === 'down' ? '3 6' : c === 'changed' ? '10 4' : 'none')
      const content = (c !== 'up' || mine) && labels < mostLabels ? text(pair) : ''
      const w = content.length * 8 + 10
      // Closer to the other end, where the lines are apart.
      const { x1, y1, x2, y2 } = lineOf(p, view.at)
      const [from, to] = p.b === chosen ? [[x2, y2] as const, [x1, y1] as const] : [[x1, y1] as const, [x2, y2] as const]
      const spot = content ? (mine ? [0.6, 0.75, 0.45, 0.85, 0.3] : [0.5, 0.38, 0.62, 0.26, 0.74]).map((k): [number, number] =>
        [from[0] + k * (to[0] - from[0]), from[1] + k * (to[1] - from[1])])
        .find(([x, y]) => taken.reserve(x - w / 2, y - 10, w, 20)) : undefined
      for (const e of [label, back]) e.setAttribute('visibility', spot ? 'visible' : 'hidden')
      if (!spot) continue
      labels++
      label.textContent = content
      label.setAttribute('fill', c === 'up' ? t.text : stroke[c])
      label.setAttribute('x', spot[0].toFixed(1))
      label.setAttribute('y', spot[1].toFixed(1))
      back.setAttribute('width', String(w))
      back.setAttribute('x', (spot[0] - w / 2).toFixed(1))
      back.setAttribute('y', (spot[1] - 10).toFixed(1))
    }
    plan.places.forEach((_, i) => {
      const c = placeCondition(i)
      const traffic = nodesOf(i).reduce((n, x) => n + (last.get(x)?.rx_bytes ?? 0) + (last.get(x)?.tx_bytes ?? 0), 0)
      const r = Number(dots[i]!.getAttribute('r'))
      halos[i]!.setAttribute('r',
        (r + (c === 'down' ? 0 : 22 * Math.sqrt(traffic / busiest) * (plan.places.length > 60 ? 0.4 : 1))).toFixed(1))
      const colour = nodeColour(nodesOf(i)[0] ?? '', t)
      halos[i]!.setAttribute('fill', c === 'up' ? colour : stroke[c])
      dots[i]!.setAttribute('fill', c === 'down' ? t.surface : colour)
      dots[i]!.setAttribute('stroke', c !== 'up' ? stroke[c] : i === chosen ? t.text : t.surface)
    })
    showHint()
  }

  draw(theme())
  const stop = onTheme(draw)
  return {
    element,
    links(now) {
      links = now
      paint()
    },
    nodes(c, l) {
      conditions = c
      last = l
      const traffic = plan.places.map((_, i) => nodesOf(i).reduce((n, x) => n + (l.get(x)?.rx_bytes ?? 0) + (l.get(x)?.tx_bytes ?? 0), 0))
      busiest = Math.max(1, busiest * 0.98, ...traffic) // decays, so that low traffic after a peak stays visible
      paint()
    },
    close: stop,
  }
}

/** room records the occupied rectangles of a drawing. reserve returns false for an overlap. */
export function room(before: [number, number, number, number][] = []): { reserve(x: number, y: number, w: number,
  h: number): boolean; copy(): ReturnType<typeof room> } {
  const boxes = [...before]
  return {
    reserve(x, y, w, h) {
      if (boxes.some(([a, b, c, d]) => x < a + c && a < x + w && y < b + d && b < y + h)) return false
      boxes.push([x, y, w, h])
      return true
    },
    copy: () => room(boxes),
  }
}

/** noMap is the placeholder before a lab exists. */
export function noMap(text: string): HTMLElement {
  const e = h('div', { class: 'livemap empty' })
  replace(e, h('p', { class: 'muted' }, text))
  return e
}
