// Traffic between nodes, as a graph and as a matrix.
import type { Traffic } from '../go/webdata'
import { bytes, percent } from '../format/format'
import type { Theme } from '../ui/theme'
import type { NodeColour } from './colour'
import { axisStyle, frame, tip, tooltipStyle, type Spec } from './chart'
import type { Option } from './echarts'

interface Edge { a: number; b: number; forth: number; back: number }

/** edgesOf combines both directions of each pair, the heaviest first. */
export function edgesOf(t: Traffic): Edge[] {
  const pairs = new Map<string, Edge>()
  t.from.forEach((from, i) => {
    const to = t.to[i] ?? 0
    const n = t.bytes[i] ?? 0
    const [a, b] = from < to ? [from, to] : [to, from]
    const e = pairs.get(`${a}/${b}`) ?? { a, b, forth: 0, back: 0 }
    if (from === a) e.forth += n
    else e.back += n
    pairs.set(`${a}/${b}`, e)
  })
  return [...pairs.values()].filter((e) => e.forth + e.back > 0).sort((x, y) => y.forth + y.back - x.forth - x.back)
}

const mostEdges = 400

/** trafficGraph draws nodes in a circle, and lines with a width by traffic. */
export function trafficGraph(tr: Traffic, colour: NodeColour): Spec {
  const edges = edgesOf(tr)
  const total = edges.reduce((sum, e) => sum + e.forth + e.back, 0)
  const top = edges[0]
  const name = (i: number) => tr.nodes[i] ?? ''
  const left = Math.max(0, edges.length - mostEdges) + (tr.left ?? 0)
  return {
    title: 'Traffic between nodes',
    unit: `bytes of IP packets, ${bytes(total)} together${left ? `; ${left} smaller pairs are not drawn` : ''}`,
    describe: top ? `${tr.nodes.length} nodes. Most between ${name(top.a)} and ${name(top.b)}: ${bytes(top.forth + top.back)}.`
      : 'No operations.',
    height: 420,
    option: (t) => drawGraph(tr, edges.slice(0, mostEdges), total, colour, t),
    table: () => ({ columns: ['from', 'to', 'bytes'],
      rows: tr.from.map((from, i) => [name(from), name(tr.to[i] ?? 0), tr.bytes[i] ?? 0]) }),
  }
}

function drawGraph(tr: Traffic, edges: Edge[], total: number, colour: NodeColour, t: Theme): Option {
  const full = edges[0] ? edges[0].forth + edges[0].back : 1
  const weight = tr.nodes.map(() => 0)
  for (const e of edges) {
    weight[e.a]! += e.forth + e.back
    weight[e.b]! += e.forth + e.back
  }
  const name = (i: number) => tr.nodes[i] ?? ''
  return {
    ...frame(t),
    legend: { show: false },
    tooltip: {
      ...tooltipStyle(t), trigger: 'item',
      formatter: (p: { dataType: string; dataIndex: number }) => {
        if (p.dataType === 'node') return tip(name(p.dataIndex), [{ name: 'sent and received', value: bytes(weight[p.dataIndex] ?? 0) }])
        const e = edges[p.dataIndex]
        return e ? tip(`${name(e.a)} – ${name(e.b)}`, [
          { name: `to ${name(e.b)}`, value: bytes(e.forth) }, { name: `to ${name(e.a)}`, value: bytes(e.back) },
          { name: 'of all', value: percent((e.forth + e.back) / Math.max(1, total)) }]) : ''
      },
    },
    series: [{
      type: 'graph', layout: 'circular', circular: { rotateLabel: tr.nodes.length > 14 }, roam: false, top: 46, bottom: 46, left: 90,
      right: 90,
      data: tr.nodes.map((n, i) => ({
        name: String(i), symbolSize: 8 + 16 * Math.sqrt((weight[i] ?? 0) / Math.max(1, ...weight)),
        itemStyle: { color: colour(n, t) },
        label: { show: tr.nodes.length <= 60, formatter: () => n.slice(0, 28), color: t.text, fontSize: 12, position: 'right',
          distance: 6 },
      })),
      edges: edges.map((e) => {
        const share = (e.forth + e.back) / full
        return { source: String(e.a), target: String(e.b),
          lineStyle: { width: 0.7 + 9 * share, opacity: 0.25 + 0.5 * share, color: t.muted, curveness: 0.12 } }
      }),
      emphasis: { focus: 'adjacency', lineStyle: { opacity: 0.9 } },
    }],
  }
}

const mostInMatrix = 40
/** Maximum number of nodes of a matrix with visible values. */
const mostWithValues = 14

/** trafficMatrix draws senders as rows and receivers as columns. */
export function trafficMatrix(tr: Traffic): Spec {
  const sums = tr.nodes.map(() => 0)
  tr.from.forEach((f, i) => {
    sums[f]! += tr.bytes[i] ?? 0
    sums[tr.to[i] ?? 0]! += tr.bytes[i] ?? 0
  })
  const heaviest = tr.nodes.map((_, i) => i).sort((a, b) => (sums[b] ?? 0) - (sums[a] ?? 0)).slice(0, mostInMatrix)
  const shown = tr.nodes.map((_, i) => i).filter((i) => heaviest.includes(i)).sort((a, b) =>
    (tr.nodes[a] ?? '').localeCompare(tr.nodes[b] ?? '', 'en', { numeric: true }))
  const place = new Map(shown.map((n, i) => [n, i]))
  const cells = tr.from.flatMap((f, i) => {
    const x = place.get(tr.to[i] ?? -1)
    const y = place.get(f)
    return x !== undefined && y !== undefined && (tr.bytes[i] ?? 0) > 0 ? [[x, y, tr.bytes[i]!]] : []
  })
  const names = shown.map((i) => tr.nodes[i] ?? '')
  return {
    title: 'Traffic matrix',
    unit: `bytes; rows are senders${shown.length < tr.nodes.length ? `; the ${shown.length} nodes with the most traffic` : ''}`,
    describe: `${names.length} senders by ${names.length} receivers.`,
    height: Math.min(640, 170 + 24 * names.length),
    option: (t) => drawMatrix(names, cells, t),
    table: () => ({
      columns: ['from \\ to', ...names],
      rows: names.map((n, y) => [n, ...names.map((_, x) => cells.find((c) => c[0] === x && c[1] === y)?.[2] ?? null)]),
    }),
  }
}

function drawMatrix(names: string[], cells: number[][], t: Theme): Option {
  const axis = axisStyle(t)
  const label = { ...(axis['axisLabel'] as object), interval: 0, formatter: (s: string) => (s.length > 14 ? s.slice(0, 13) + '…' : s) }
  const most = Math.max(1, ...cells.map((c) => c[2] ?? 0))
  const least = Math.floor(Math.log10(Math.max(1, Math.min(most, ...cells.map((c) => c[2] ?? 0)))))
  return {
    ...frame(t),
    legend: { show: false },
    grid: { left: 108, right: 14, top: 92, bottom: 48 },
    tooltip: {
      ...tooltipStyle(t), trigger: 'item',
      formatter: (p: { value: number[] }) => tip(`${names[p.value[1] ?? 0]} → ${names[p.value[0] ?? 0]}`,
        [{ name: 'sent', value: bytes(p.value[3] ?? 0) }]),
    },
    xAxis: { ...axis, type: 'category', data: names, position: 'top', axisLabel: { ...label, rotate: names.length > 6 ? 50 : 0 },
      axisLine: { show: false }, axisTick: { show: false } },
    yAxis: { ...axis, type: 'category', data: names, inverse: true, axisLabel: label, axisLine: { show: false },
      axisTick: { show: false } },
    visualMap: {
      dimension: 2, min: least, max: Math.log10(most), inRange: { color: t.heat }, orient: 'horizontal', left: 'center', bottom: 0,
      itemHeight: 120, itemWidth: 10, calculable: false, hoverLink: false,
      text: [bytes(most), `${bytes(Math.pow(10, least))} `], textStyle: { color: t.muted, fontSize: 11 },
    },
    series: [{
      type: 'heatmap', progressive: 0, emphasis: { disabled: true }, itemStyle: { borderColor: t.surface, borderWidth: 1.5 },
      label: { show: names.length <= mostWithValues, fontSize: 10,
        formatter: (p: { value: number[] }) => bytes(p.value[3] ?? 0, (v) => v.toPrecision(2).replace(/e.*/, '')).replace(' ', '') },
      data: cells.map(([x, y, n]) => {
        const v = Math.log10(Math.max(1, n ?? 1))
        // Dark squares of a light page, and light ones of a dark page, have text of the page's own colour.
        return { value: [x, y, v, n], label: { color: (v - least) / Math.max(1e-9, Math.log10(most) - least) > 0.5 ? t.surface : t.text } }
      }),
    }],
  }
}
