// The table of nodes of a running lab, with site, usage and traffic.
import { figure, units, bytes } from '../format/format'
import { h, replace, s } from '../ui/dom'
import { wide } from '../ui/table'
import type { Cloud, Node as LabNode } from '../go/live'
import type { Condition, NodeSecond } from '../go/record'
import { nodeColours } from '../charts/colour'
import { swatch } from '../charts/chart'
import { theme } from '../ui/theme'
import { badge } from './pages'

export interface NodeTable {
  element: HTMLElement
  update(history: Map<string, NodeSecond[]>, conditions: Map<string, Condition>): void
}

const mostRows = 60
const past = 60

/** spark draws the last minute of a figure; its height is `most`. */
export function spark(values: number[], most: number): SVGElement {
  const w = 140
  const high = 20
  const last = values.slice(-past)
  const x = (i: number) => w - (last.length - 1 - i) * (w / (past - 1))
  const y = (v: number) => high - 1 - (high - 2) * Math.min(1, v / Math.max(most, 1e-9))
  const points = last.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(' ')
  return s('svg', { class: 'spark', viewBox: `0 0 ${w} ${high}`, width: w, height: high, 'aria-hidden': 'true' },
    last.length > 1 ? s('polyline', { points, fill: 'none' }) : null)
}

/** nodeTable lists the nodes. For a large cloud it lists nodes that are down, then the busiest. */
export function nodeTable(cloud: Cloud): NodeTable {
  const nodes = cloud.nodes ?? []
  const colour = nodeColours(nodes.map((n) => n.name))
  const body = h('tbody')
  const left = h('p', { class: 'muted small', hidden: true })
  const element = h('div', {}, wide('Nodes, per second',
    h('table', { class: 'nodes' },
      h('caption', { class: 'visually-hidden' }, 'Nodes, per second'),
      h('thead', {}, h('tr', {},
        ['Node', 'State', 'CPU', '', 'Memory', 'In', 'Out'].map((c, i) => h('th', { scope: 'col', class: i === 2 || i > 3 ? 'num' : '' },
        c || h('span', { class: 'visually-hidden' }, 'CPU, last minute'))))),
      body)), left)

  function row(n: LabNode, rows: NodeSecond[], condition: Condition, most: number): HTMLElement {
    const x = rows.at(-1)
    const mark = condition === 'down' ? badge('down', 'bad') : condition === 'changed' ? badge('strained', 'warn')
      : badge(n.role === 'client' ? 'client' : 'up', n.role === 'client' ? '' : 'good')
    return h('tr', { class: condition === 'down' ? 'bad' : '' },
      h('th', { scope: 'row' }, swatch(colour(n.name, theme())), n.name, n.site !== n.name ? h('span', { class: 'muted' }, ` ${n.site}`)
        : null), h('td', {}, mark),
      h('td', { class: 'num' }, x ? figure(x.cpu_cores) : '–', n.cpu_cores ? h('span', { class: 'muted' }, ` of ${figure(n.cpu_cores)}`)
        : null),
      h('td', {}, spark(rows.map((r) => r.cpu_cores), n.cpu_cores ?? most)), h('td', { class: 'num' }, x ? bytes(x.memory_bytes) : '–'),
      h('td', { class: 'num' }, x ? units.bytesPerSecond.write(x.rx_bytes) : '–'),
      h('td', { class: 'num' }, x ? units.bytesPerSecond.write(x.tx_bytes) : '–'))
  }

  return {
    element,
    update(history, conditions) {
      const use = (n: LabNode) => history.get(n.name)?.at(-1)?.cpu_cores ?? 0
      const most = Math.max(0.1, ...nodes.flatMap((n) => (history.get(n.name) ?? []).slice(-past).map((r) => r.cpu_cores)))
      const rank = (n: LabNode) => (conditions.get(n.name) === 'down' ? 1e9 : conditions.has(n.name) ? 1e6 : 0) + use(n)
      const shown = nodes.length <= mostRows ? nodes : [...nodes].sort((a, b) => rank(b) - rank(a)).slice(0, mostRows)
      replace(body, shown.map((n) => row(n, history.get(n.name) ?? [], conditions.get(n.name) ?? 'up', most)))
      left.hidden = shown.length === nodes.length
      left.textContent = `${nodes.length - shown.length} less busy nodes not shown.`
    },
  }
}
