import { expect, test } from 'vitest'
import type { Effect } from '../go/record'
import type { Band } from '../go/series'
import type { Cloud } from '../go/webdata'
import { bandText, inForce, united } from './bands'
import { lineOf, nameOf, planOf, weather } from './cloud'
import { projectionOf } from './projection'

const cloud: Cloud = {
  sites: [{ name: 'Dublin', lat: 53, lon: -6, located: true }, { name: 'Sydney', lat: -34, lon: 151, located: true },
    { name: 'Seattle', lat: 47, lon: -122, located: true }],
  nodes: [{ name: 'd1', site: 0, role: 'data' }, { name: 'd2', site: 0, role: 'data' }, { name: 's', site: 1, role: 'data' },
    { name: 'c', site: 2, role: 'client' }],
  links: [{ id: 'd1~s', a: 0, b: 2, rtt_ms: 250 }, { id: 'd2~s', a: 1, b: 2, rtt_ms: 240 }, { id: 'd1~d2', a: 0, b: 1, rtt_ms: 1 },
    { id: 's~c', a: 2, b: 3, rtt_ms: 150 }],
}
const cut: Effect = { on: 'links', makes: 'down' }
const band = (b: Partial<Band>): Band => ({ name: 'x', kind: 'x', effect: cut, text: '', from: 5, to: 9, ...b })

test('sites are places, and links within one are none', () => {
  const plan = planOf(cloud)
  expect(plan.places.map((p) => p.name)).toEqual(['Dublin', 'Sydney', 'Seattle'])
  expect(plan.pairs.map((p) => [p.a, p.b, p.links.length, p.rtt])).toEqual([[0, 1, 1, 250], [0, 1, 1, 240], [1, 2, 1, 150]])
  expect(plan.places[2]?.client).toBe(true)
})

test('two links of a pair are two lines, and many are one', () => {
  const plan = planOf(cloud)
  const [one, two] = plan.pairs.map((p) => lineOf(p, [[0, 0], [100, 0], [0, 100]]))
  expect(one!.y1).toBe(one!.y2)
  expect(Math.abs(one!.y1 - two!.y1)).toBeGreaterThan(5)
  expect(plan.pairs.map((p) => nameOf(plan, p, p.links.map((l) => cloud.links![l]!.id)))).toEqual(
    ['Dublin – Sydney, d1~s', 'Dublin – Sydney, d2~s', 'Sydney – Seattle'])
  const many = planOf({ ...cloud, links: Array.from({ length: 9 }, (_, i) => ({ id: `${i}`, a: 0, b: 2, rtt_ms: 9 - i })) })
  expect(many.pairs).toMatchObject([{ a: 0, b: 1, rtt: 1, across: 0 }])
  expect(weather({ ...cloud, links: many.pairs[0]!.links.map((i) => ({ id: `${i}`, a: 0, b: 2, rtt_ms: 1 })) }, many,
    [band({ targets: ['3'] })], 6).pairs).toEqual(['partly'])
})

test('the nodes of one site are places', () => {
  const one: Cloud = { sites: [{ name: 'lab' }], nodes: cloud.nodes!.map((n) => ({ ...n, site: 0 })), links: cloud.links }
  expect(planOf(one).places).toHaveLength(4)
  expect(planOf(one).located).toBe(false)
})

test('the map keeps both shores of the Pacific together', () => {
  const view = projectionOf(planOf(cloud), 1000)
  const [dublin, sydney, seattle] = view.at as [[number, number], [number, number], [number, number]]
  expect(sydney[0]).toBeLessThan(seattle[0])
  expect(seattle[0]).toBeLessThan(dublin[0])
  for (const [x, y] of view.at) {
    expect(x).toBeGreaterThanOrEqual(0)
    expect(x).toBeLessThanOrEqual(1000)
    expect(y).toBeGreaterThanOrEqual(0)
    expect(y).toBeLessThanOrEqual(view.height)
  }
})

test('weather follows events', () => {
  const plan = planOf(cloud)
  const at = (bands: Band[], t: number) => weather(cloud, plan, bands, t)
  const one = [band({ targets: ['d1~s'] })]
  expect(at(one, 4).pairs).toEqual(['up', 'up', 'up'])
  expect(at(one, 6).pairs).toEqual(['down', 'up', 'up'])
  expect(at([band({ targets: ['d1~s', 'd2~s'] })], 6).pairs).toEqual(['down', 'down', 'up'])
  expect(at(one, 9).pairs).toEqual(['up', 'up', 'up'])
  expect(at([band({ effect: { on: 'links', makes: 'changed' }, targets: ['s~c'] })], 6).pairs).toEqual(['up', 'up', 'changed'])
  expect(at([band({ effect: { on: 'nodes', makes: 'down' }, targets: ['s'] })], 6).places).toEqual(['up', 'down', 'up'])
  expect(at([band({ effect: { on: 'streams', makes: 'changed' }, targets: ['s>c'] })], 6).places).toEqual(['up', 'changed', 'changed'])
})

test('what settles stays', () => {
  const plan = planOf(cloud)
  const at = (bands: Band[], t: number) => weather(cloud, plan, bands, t).places[1]
  const leaves: Effect = { on: 'nodes', makes: 'down', settles: true, member: 'leave' }
  const joins: Effect = { on: 'nodes', makes: 'up', settles: true, member: 'join' }
  const left = band({ effect: leaves, targets: ['s'], from: 2, to: 3 })
  for (const back of [band({ effect: joins, targets: ['s'], from: 7, to: 8 }),
    band({ effect: joins, reverts: true, targets: ['s'], from: 7, to: 8 })]) {
    expect([5, 7.5, 8].map((t) => at([left, back], t))).toEqual(['down', 'down', 'up'])
  }
})

test('links that are brought up stay so until they are cut again', () => {
  const plan = planOf(cloud)
  const bands = [band({ targets: ['s~c'], from: 1, to: 20 }),
    band({ effect: { on: 'links', makes: 'up' }, targets: ['s~c'], from: 5, to: 12 }), band({ targets: ['s~c'], from: 8, to: 10 })]
  expect([4, 6, 9, 11, 13].map((t) => weather(cloud, plan, bands, t).pairs[2])).toEqual(['down', 'up', 'down', 'up', 'down'])
})

test('bands that overlap are one stretch', () => {
  expect(united([band({ from: 6, to: 8 }), band({ from: 1, to: 7 }), { ...band({ from: 20 }), to: undefined as unknown as number }],
    15)).toEqual([[1, 8], [20, 20]])
  expect(inForce(band({}), 9)).toBe(false)
  expect(bandText(band({ text: 'link down' }))).toBe('x: link down, 5 s to 9 s')
  expect(bandText(band({ text: 's leaves', reverts: true }))).toBe('x: s leaves, reverted, 5 s to 9 s')
})

test('a thousand sites have a map', () => {
  const sites = Array.from({ length: 1000 }, (_, i) => ({ name: `site ${i}`, lat: (i % 100) - 50, lon: (i * 7) % 180, located: true }))
  const plan = planOf({ sites, nodes: sites.map((s, i) => ({ name: s.name, site: i, role: 'data' })),
    links: sites.slice(1).map((s, i) => ({ id: s.name, a: i, b: i + 1, rtt_ms: i })) })
  expect(plan.pairs).toHaveLength(999)
  expect(projectionOf(plan, 1000).at).toHaveLength(1000)
})
