// The map of sites and links, with their state at a time of the trial.
import type { Band } from '../go/series'
import type { Cloud } from '../go/webdata'
import { clock, figure, units } from '../format/format'
import { h, replace, s } from '../ui/dom'
import { onTheme, theme, type Theme } from '../ui/theme'
import { bandText, inForce } from './bands'
import { figureOf, tip, type Table } from './chart'
import { nodeColours } from './colour'
import { lineOf, nameOf, planOf, stateText, weather, type Pair, type State } from './cloud'
import { land } from './land'
import { projectionOf } from './projection'

export interface SiteMap {
  element: HTMLElement
  /** at shows the state at time t of the trial. */
  at(t: number): void
  /** update replaces the events. */
  update(bands: Band[]): void
  dispose(): void
}

const width = 1000
/** Maximum number of lines: links with events first, then the shortest. */
const mostLines = 1500
const mostNames = 80
let outlines: [number, number][][] | undefined

/** siteMap draws a cloud; note follows its title. */
export function siteMap(cloud: Cloud, first: Band[], note = ''): SiteMap {
  let bands = first
  let moment = 0
  const plan = planOf(cloud)
  const view = projectionOf(plan, width)
  const concerned = new Set(bands.flatMap((b) => b.targets ?? []))
  const ranked = plan.pairs.map((p, i) => ({ p, i, concerned: p.links.some((l) => concerned.has(cloud.links?.[l]?.id ?? '')) }))
    .sort((x, y) => Number(y.concerned) - Number(x.concerned) || x.p.rtt - y.p.rtt)
  const drawn = ranked.slice(0, mostLines)
  const left = plan.pairs.length - drawn.length + (cloud.left ?? 0)
  const nodes = plan.places.reduce((n, p) => n + p.nodes.length, 0)

  const plot = h('div', { class: 'plot map', role: 'img', tabindex: 0 })
  const now = h('p', { class: 'now muted', 'aria-live': 'off' })
  const hint = h('div', { class: 'floating', hidden: true })
  const frame = figureOf(plot, () => ({
    title: plan.located ? 'Map of the sites' : 'Sites and links',
    unit: ['lines: round trip as set', left > 0 ? `${left} longer links are not drawn` : '', note].filter(Boolean).join('; '),
    describe: `${plan.places.length} places with ${nodes} nodes and ${plan.pairs.length} connections, round trips ` +
      `${range(plan.pairs.map((p) => p.rtt))}.`,
    table,
  }), () => new XMLSerializer().serializeToString(drawing), () => '')
  let drawing = s('svg', {})
  let lines = new Map<number, SVGElement>()
  let dots: SVGElement[] = []

  const nodeColour = nodeColours((cloud.nodes ?? []).map((n) => n.name))
  const idsOf = (p: Pair) => p.links.map((l) => cloud.links?.[l]?.id ?? '')

  function table(): Table {
    const w = weather(cloud, plan, bands, moment)
    return {
      columns: ['from', 'to', 'link', 'round trip set (ms)', 'links', `state at ${clock(moment)}`],
      rows: plan.pairs.map((p, i) => [plan.places[p.a]?.name ?? '', plan.places[p.b]?.name ?? '', p.links.length === 1 ? idsOf(p)[0]!
        : null, Number(figure(p.rtt).replace(/[^\d.]/g, '')), p.links.length, stateText(w.pairs[i] ?? 'up')]),
    }
  }

  function draw(): void {
    const t = theme()
    const longest = Math.max(1, ...plan.pairs.map((p) => p.rtt))
    lines = new Map()
    const joined = drawn.map(({ p, i }) => {
      const e = s('line', { ...lineOf(p, view.at), 'data-pair': i, 'stroke-width': line(p.rtt, longest, drawn.length) })
      lines.set(i, e)
      return e
    })
    const radius = plan.places.length > 200 ? 2.5 : plan.places.length > 60 ? 4 : 6
    dots = plan.places.map((p, i) =>
      s('circle', { cx: view.at[i]![0], cy: view.at[i]![1], r: p.client ? radius + 3 : radius, 'data-place': i, stroke: t.surface,
      'stroke-width': 1.5 }))
    drawing = s('svg', { xmlns: 'http://www.w3.org/2000/svg', viewBox: `0 0 ${width} ${view.height}`,
      'font-family': 'system-ui, sans-serif', 'font-size': 13 },
      s('rect', { width, height: view.height, fill: t.surface }), coast(t), joined, dots, names(t))
    replace(plot, drawing, hint)
    colour()
  }

  function coast(t: Theme): SVGElement | null {
    if (!view.project) return null
    outlines ??= land()
    // A ring that crosses the date line continues on its other side.
    const ring = (shift: number) => outlines!.map((r) => r.map(([lon, lat], i) =>
      (i === 0 || Math.abs(lon - r[i - 1]![0]) > 180 ? 'M' : 'L') + view.project!(lon + shift,
        lat).map((v) => v.toFixed(1)).join(',')).join('')).join('')
    return s('path', { d: ring(0) + ring(360), fill: t.faint, stroke: t.line, 'stroke-width': 0.6, 'pointer-events': 'none' })
  }

  function names(t: Theme): SVGElement[] {
    const taken: [number, number, number, number][] = []
    if (plan.places.length > 4 * mostNames) return []
    return plan.places.flatMap((p, i) => {
      const [x, y] = view.at[i]!
      const text = p.name.length > 24 ? p.name.slice(0, 23) + '…' : p.name
      const w = text.length * 7.2
      for (const [dx, dy] of [[10, 4], [-10 - w, 4], [-w / 2, -11], [-w / 2, 20]] as const) {
        const box: [number, number, number, number] = [x + dx, y + dy - 12, x + dx + w, y + dy + 3]
        if (box[0] < 0 || box[2] > width || box[1] < 0 || box[3] > view.height) continue
        if (taken.some((o) => box[0] < o[2] && o[0] < box[2] && box[1] < o[3] && o[1] < box[3])) continue
        taken.push(box)
        return [s('text', { x: x + dx, y: y + dy, fill: t.text, stroke: t.surface, 'stroke-width': 3.5, 'paint-order': 'stroke',
          'pointer-events': 'none' }, text)]
      }
      return []
    })
  }

  function colour(): void {
    const t = theme()
    const w = weather(cloud, plan, bands, moment)
    const paint: Record<State, string> = { up: t.ok, changed: t.unknown, partly: t.failed, down: t.failed }
    for (const [i, e] of lines) {
      const state = w.pairs[i] ?? 'up'
      e.setAttribute('stroke', paint[state])
      e.setAttribute('stroke-opacity', state === 'up' ? (drawn.length > 300 ? '0.14' : '0.38') : '0.95')
      if (state === 'up') e.removeAttribute('stroke-dasharray')
      else e.setAttribute('stroke-dasharray', state === 'changed' ? '9 3' : '2 5')
    }
    dots.forEach((e, i) => {
      const state = w.places[i] ?? 'up'
      e.setAttribute('fill', state === 'down' ? t.surface : nodeColour(cloud.nodes?.[plan.places[i]?.nodes[0] ?? -1]?.name ?? '', t))
      e.setAttribute('stroke', state === 'up' ? t.surface : paint[state])
      e.setAttribute('stroke-width', state === 'up' ? '1.5' : '3')
    })
    const active = bands.filter((b) => inForce(b, moment)).map(bandText)
    now.textContent = `At ${clock(moment)}: ` +
      `${active.length ? active.slice(0, 6).join(' · ') + (active.length > 6 ? ` · ${active.length - 6} more` : '') : 'no changes.'}`
  }

  function hover(e: PointerEvent): void {
    const target = e.target as Element
    const pair = plan.pairs[Number(target.getAttribute('data-pair') ?? NaN)]
    const place = plan.places[Number(target.getAttribute('data-place') ?? NaN)]
    hint.hidden = !pair && !place
    if (hint.hidden) return
    const w = weather(cloud, plan, bands, moment)
    if (pair) {
      const bps = pair.links.map((l) => cloud.links?.[l]?.bps ?? 0).filter((b) => b > 0)
      replace(hint, tip(nameOf(plan, pair, idsOf(pair)), [
        { name: 'round trip set', value: units.milliseconds.write(pair.rtt) },
        ...(bps.length ? [{ name: 'bandwidth set', value: units.bitsPerSecond.write(Math.max(...bps)) }] : []),
        ...(pair.links.length > 1 ? [{ name: 'links', value: String(pair.links.length) }] : []),
        { name: `at ${clock(moment)}`, value: stateText(w.pairs[plan.pairs.indexOf(pair)] ?? 'up') }]))
    } else if (place) {
      replace(hint, tip(place.name, [
        { name: 'nodes', value: place.nodes.slice(0, 6).map((n) => cloud.nodes?.[n]?.name ?? '').join(', ') + (place.nodes.length > 6
          ? ` and ${place.nodes.length - 6} more` : '') },
        { name: `at ${clock(moment)}`, value: stateText(w.places[plan.places.indexOf(place)] ?? 'up') }]))
    }
    const box = plot.getBoundingClientRect()
    hint.style.left = `${Math.min(e.clientX - box.left + 14, box.width - 240)}px`
    hint.style.top = `${e.clientY - box.top + 14}px`
  }

  plot.addEventListener('pointermove', hover)
  plot.addEventListener('pointerleave', () => { hint.hidden = true })
  const stop = onTheme(draw)
  draw()
  frame.element.append(key(), now)
  return {
    element: frame.element,
    at(t) {
      moment = t
      colour()
    },
    update(next) {
      bands = next
      colour()
    },
    dispose: stop,
  }
}

function line(rtt: number, longest: number, count: number): number {
  return count > 300 ? 0.8 : 1 + 2.2 * (1 - rtt / longest)
}

function range(values: number[]): string {
  if (values.length === 0) return 'unknown'
  return `${units.milliseconds.write(Math.min(...values))} to ${units.milliseconds.write(Math.max(...values))}`
}

function key(): HTMLElement {
  const mark = (kind: string, text: string) => h('span', {}, h('i', { class: `mark ${kind}`, 'aria-hidden': 'true' }), text)
  return h('p', { class: 'key' }, mark('up', 'as set'), mark('changed', 'changed by an event'), mark('down', 'down'),
    h('span', {}, 'circles: colours of nodes; largest circle: client'))
}
