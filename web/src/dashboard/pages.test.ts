import { afterEach, describe, expect, it, vi } from 'vitest'
import { linkName } from '../charts/cloud'
import type { Metric } from '../go/compare'
import type { Cloud } from '../go/live'
import type { Event as LabEvent, NodeSecond, Second } from '../go/record'
import type { Entry } from '../go/serve'
import type { Detail } from '../go/webdata'
import { chosen, linkFigure, pairs, strip, usage, write } from '../charts/pairs'
import { figuresOf, held, overlaid } from './courses'
import { offers } from '../go/offers'
import { eventOf, firing } from './firing'
import { bandsOf, busiest, stolenOf } from './livecharts'
import { liveMap, room } from './livemap'
import { eventRow } from './livepage'
import { nodeTable } from './nodes'
import { ago } from './pages'
import { matches, runsPage } from './runspage'

const hostile = '<img src=x onerror=alert(1)>"\'&'
const entry = (more: Partial<Entry> = {}): Entry =>
  ({ name: '2026-quickstart', state: 'finished', planned: 2, trials: { valid: 2 }, notes: { schema: '', revision: 0 }, ...more })
const cloud = (sites: number): Cloud => ({
  name: hostile, sites: Array.from({ length: sites },
    (_, i) => ({ name: i ? `site ${i}` : hostile, lat: (i % 120) - 60, lon: (i % 360) - 180, located: true })),
  nodes: Array.from({ length: sites },
    (_, i) => ({ name: i ? `node ${i}` : hostile, site: i ? `site ${i}` : hostile, role: i === 1 ? 'client' : 'data' })),
  links: Array.from({ length: sites - 1 },
    (_, i) => ({ id: `l${i}`, a: hostile, b: `node ${i + 1}`, ab: { latency_ms: i }, ba: { latency_ms: i } })),
})
const second = (node: string, t: number, cpu: number): NodeSecond =>
  ({ t, node, cpu_cores: cpu, user_cores: 0, system_cores: 0, steal_cores: 0, throttled_cores: 0, memory_bytes: 0, read_bytes: 0,
  wrote_bytes: 0, rx_bytes: 1000, tx_bytes: 10 })

afterEach(() => vi.unstubAllGlobals())

describe('the list of runs', () => {
  it('searches every word, tags by name', () => {
    const e = entry({ experiment: 'fhc', notes: { schema: '', revision: 1, note: 'Slow disk', tags: ['Baseline'] },
      parameters: { scale: ['0.2', '1'] }, databases: { redis: '8.0' } })
    for (const s of ['', 'fhc', 'SLOW', 'scale=0.2', 'redis disk', 'tag:baseline', 'valid']) expect(matches(e, s), s).toBe(true)
    for (const s of ['etcd', 'slow fast', 'tag:base', 'scale=3']) expect(matches(e, s), s).toBe(false)
  })
  it('shows names as text, and what cannot be read', async () => {
    const list = [entry({ experiment: hostile, description: hostile, notes: { schema: '', revision: 0, note: hostile, tags: [hostile] } }),
      entry({ name: hostile, state: 'unreadable', problem: hostile, trials: {} })]
    vi.stubGlobal('fetch', async () => new Response(JSON.stringify(list)))
    const page = runsPage()
    await vi.waitFor(() => expect(page.element.querySelectorAll('tbody tr')).toHaveLength(2))
    expect(page.element.querySelector('img')).toBeNull()
    expect(page.element.textContent).toContain(hostile)
    expect([...page.element.querySelectorAll('a')].every((a) => !a.getAttribute('href')!.includes('<'))).toBe(true)
    page.close()
  })
})

describe('firing', () => {
  it('writes events as an experiment has them', () => {
    const of = (id: string) => offers.find((o) => o.id === id)!
    expect(eventOf(of('cut'), ['a~b'], '', '10s')).toEqual({ link_down: { ids: ['a~b'] }, for: '10s' })
    expect(eventOf(of('slow'), ['a~b'], ' 3 ', '')).toEqual({ latency: { ids: ['a~b'], scale: 3 } })
    expect(eventOf(of('lose'), ['a~b'], '5%', '')).toEqual({ loss: { ids: ['a~b'], add: '5%' } })
    expect(eventOf(of('kill'), ['a'], '', '')).toEqual({ kill: { nodes: ['a'] } })
  })
  it('tells the links of a pair apart', () => {
    expect(['Pune~Seoul', 'Pune~Seoul#2', 'undersea'].map((id) => linkName(id, 'Pune', 'Seoul'))).toEqual(
      ['Pune – Seoul', 'Pune – Seoul, link 2', 'Pune – Seoul, undersea'])
  })
  it('aims at what was pointed out, never kills the client, and waits for the measurement', () => {
    const f = firing('r', cloud(3), () => {})
    const [what, whom] = [...f.element.querySelectorAll('select')] as [HTMLSelectElement, HTMLSelectElement]
    const button = f.element.querySelector('button')!
    expect(button.disabled).toBe(true)
    f.ready(true)
    expect(button.disabled).toBe(false)
    f.aim([], [hostile, 'node 1'], hostile)
    expect(offers.find((o) => o.id === what.value)!.on).toBe('nodes')
    expect(whom.options[0]!.textContent).toBe(hostile)
    expect([...whom.options].map((o) => o.textContent)).not.toContain('node 1')
    expect(f.element.querySelector('img')).toBeNull()
  })
})

describe('the picture', () => {
  it('shows a thousand sites, and hostile names as text', () => {
    for (const n of [3, 1000]) {
      const c = cloud(n)
      const map = liveMap(c, () => {})
      const table = nodeTable(c)
      const last = new Map([[hostile, second(hostile, 1, 0.5)]])
      map.nodes(new Map([['node 2', 'down']]), last)
      map.links(new Map(c.links!.map((l) => [l.id, { ...l, ab: { latency_ms: 1, down: true } }])))
      table.update(new Map([[hostile, [last.get(hostile)!]]]), new Map([['node 2', 'down']]))
      expect(map.element.querySelectorAll('circle.site')).toHaveLength(n)
      expect(map.element.querySelectorAll('img')).toHaveLength(0)
      expect(table.element.querySelectorAll('img')).toHaveLength(0)
      expect(table.element.querySelectorAll('tbody tr').length).toBeLessThanOrEqual(60)
      expect(table.element.querySelector('tr.bad')!.textContent).toContain('node 2')
      map.close()
    }
  })
  it('marks what is cut', () => {
    const c = cloud(2)
    const map = liveMap(c, () => {})
    const dashes = () => map.element.querySelector('line[stroke-dasharray]:not(.hit)')!.getAttribute('stroke-dasharray')
    expect(dashes()).toBe('none')
    map.links(new Map([['l0', { ...c.links![0]!, carrier_down: true }]]))
    expect(dashes()).not.toBe('none')
    expect(map.element.textContent).toContain('cut')
  })
  it('leaves room for every text', () => {
    const r = room()
    expect([r.reserve(0, 0, 10, 10), r.reserve(5, 5, 10, 10), r.copy().reserve(20, 0, 5, 5),
      r.reserve(20, 0, 5, 5)]).toEqual([true, false, true, true])
  })
  it('shades seconds in which processors were taken away, those that follow each other in one band', () => {
    const at = (t: number, stolen_s?: number) => ({ t, length_s: 1, ...(stolen_s ? { stolen_s } : {}) }) as Second
    expect(stolenOf([at(1), at(2, 0.1), at(3, 0.2), at(4), at(5, 0.3)]).map((b) => [b.from, b.to])).toEqual([[2, 4], [5, 6]])
  })

  it('shows events as text, and as bands while they are in force', () => {
    const e = { t: 3, id: 1, kind: 'kill', message: hostile, source: 'ui', state: 'active', targets: ['a'],
      apply: { due: { ns: 3e9, wall: '' }, began: { ns: 3e9, wall: '' } } } as LabEvent
    expect(eventRow(e).querySelector('img')).toBeNull()
    expect(eventRow(e).textContent).toContain('by hand')
    expect(bandsOf([e])[0]).toMatchObject({ from: 3 })
    expect(bandsOf([e])[0]!.to).toBeUndefined()
    expect(bandsOf([{ ...e, state: 'reverted', revert: { due: { ns: 5e9, wall: '' }, completed: { ns: 6e9, wall: '' } } }])[0]!.to).toBe(6)
  })
  it('shows what settles while it does, on its way there and back', () => {
    const at = (s: number) => ({ ns: s * 1e9, wall: '' })
    const left: LabEvent = { t: 2, id: 1, kind: 'x', message: '', state: 'begun', effect: { on: 'nodes', makes: 'down', settles: true },
      apply: { due: at(2), began: at(2) } }
    const spans = (e: LabEvent) => bandsOf([e]).map((b) => [b.from, b.to, b.reverts])
    expect(spans(left)).toEqual([[2, undefined, undefined]])
    const settled: LabEvent = { ...left, state: 'active', apply: { ...left.apply!, completed: at(5) } }
    expect(spans(settled)).toEqual([[2, 5, undefined]])
    expect(spans({ ...settled, revert: { due: at(9), began: at(9), completed: at(11) } })).toEqual([[2, 5, undefined], [9, 11, true]])
  })
  it('picks the busiest nodes', () => {
    const h = new Map(['a', 'b', '@host', '@emulator'].map((n, i) => [n, [second(n, 1, i)]]))
    expect(busiest(h)).toEqual(['b', 'a', '@host'])
  })
})

describe('time courses', () => {
  const detail = (t: number[], bin_s: number, names: string[]) =>
    ({ timeline: { t, bin_s, ok: t.map((x) => 10 * x) },
    operations: { t, bin_s, names, p95: names.map(() => t), p99: names.map(() => t) } }) as unknown as Detail
  it('of one operation are laid over those of the same', () => {
    const [a, b] = [detail([0, 1, 2, 3], 1, ['READ', 'UPDATE']), detail([0, 2], 2, ['READ', 'SCAN'])]
    const all = figuresOf(a, b)
    expect(all.map((f) => f.name)).toEqual(['Goodput', 'READ p95', 'READ p99'])
    expect(overlaid(all[0]!, a, b).curves.map((c) => [c.name, c.values])).toEqual([['A', [0, 10, 20, 30]], ['B', [0, 0, 20, 20]]])
  })
  it('have no values where nothing was measured', () => {
    expect(held({ t: [1, 2], bin: 1, values: [5, 6] }, [0, 1, 2, 3])).toEqual([null, 5, 6, null])
  })
})

describe('figures', () => {
  it('of one operation stand against those of the same, none of them twice', () => {
    const m = (name: string, more: Partial<Metric> = {}) => ({ name, leading: true, ...more }) as Metric
    const all = [m('goodput'), m('throughput', { same_as: 'goodput' }), m('read.p95'), m('update.p95'), m('read.max', { leading: false }),
      m('events.read.dip')]
    const names = (every: boolean, operation: string) => chosen(all, every, operation).map((x) => x.name)
    expect(names(false, '')).toEqual(['goodput', 'read.p95', 'update.p95', 'events.read.dip'])
    expect(names(true, 'read')).toEqual(['goodput', 'read.p95', 'read.max', 'events.read.dip'])
  })
  it('have units', () => {
    expect(write(0.0125, 's')).toBe('12.5 ms')
    expect(write(1043, '/s')).toContain('ops/s')
    expect(write(0.5, '%')).toContain('%')
    expect(write(3, '')).toBe('3.00')
  })
  it('stay within the strip, of one repetition too', () => {
    const f = { n: 1, mean: 5, values: [5] }
    const svg = strip({ name: 'x', unit: '', a: f, b: f, sentence: hostile } as Metric)
    expect([...svg.querySelectorAll('circle')].every((c) => Number.isFinite(Number(c.getAttribute('cx'))))).toBe(true)
  })
  it('say when', () => {
    const now = Date.parse('2026-01-02T12:00:00Z')
    expect(ago('2026-01-02T11:00:00Z', now).textContent).toBe('60 min ago')
    expect(ago(undefined).textContent).toBe('–')
  })
})

it('a link that was left as it is is told with its losses, another with what it was set to', () => {
  expect(linkFigure({ real: true, rtt_ms: 20, rtt_p99_ms: 24, loss: 0.02 })).toMatch(/^20\.0\sms, p99 24\.0\sms, 2\.00\s% lost, real$/)
  expect(linkFigure({ set_rtt_ms: 20, rtt_ms: 20.1, rtt_p99_ms: 20.4 })).toMatch(/^20\.1\sms, p99 20\.4\sms, set to 20\.0\sms$/)
  expect(linkFigure({ rtt_ms: 0, rtt_p99_ms: 0 })).toBe('no answer')
})

it('compares two sides: names as text, and the CPU use over time and as a distribution', () => {
  const side = (run: string) => ({ run, cell: 1, parameters: { database: hostile }, trials: [1, 2] })
  const use = (mean: number) => ({ mean, sd: 1, variance: 1, curve: [{ x: 0, y: mean }, { x: 1, y: mean }], cdf: [{ x: mean, y: 1 }] })
  const cpu = { unit: '%', a: use(20), b: use(40), g_of_seconds: 2 }
  const figures = { n: 2, mean: 100, sd: 3, ci95: 4, values: [98, 102] }
  const m = { name: 'goodput', unit: '/s', leading: true, a: figures, b: figures, difference: 0, sentence: hostile } as Metric
  const shown = pairs({ schema: '', seed: 1, pairs: [{ a: side(hostile), b: side('b'), metrics: [m], cpu }] }, (run) => run)
  const text = shown.elements.map((e) => e.textContent).join('')
  expect(text).toContain(hostile)
  expect(text).toContain('g is 2')
  expect(shown.elements.flatMap((e) => [...e.querySelectorAll('img')])).toHaveLength(0)
  expect(shown.elements[0]!.querySelectorAll('figure.chart')).toHaveLength(2)
  expect(usage(cpu).map((x) => x.table().rows)).toEqual([[[0, 20, 40], [1, 20, 40]], [['A', 20, 1], ['B', 40, 1]]])
  shown.close()
})
