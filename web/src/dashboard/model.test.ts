import { describe, expect, it } from 'vitest'
import type { Link, State } from '../go/live'
import type { Condition, Effect, Event as LabEvent } from '../go/record'
import { apply, empty, eventsOf, linkCondition, nodeConditions, roundTrip, type Model } from './model'

const link = (id: string, more: Partial<Link> = {}): Link =>
  ({ id, a: 'a', b: 'b', ab: { latency_ms: 20 }, ba: { latency_ms: 22 }, ...more })
const state = (): State => ({
  run: { name: 'r', experiment: 'e', planned: 1 }, seconds: [], events: [], results: [], doubts: [],
  totals: { ok: 0, failed: 0, unknown: 0, dropped: 0 },
  nodes: [{ t: 0, node: 'a', cpu_cores: 0.5, user_cores: 0, system_cores: 0, steal_cores: 0, throttled_cores: 0, memory_bytes: 1,
    read_bytes: 0, wrote_bytes: 0, rx_bytes: 0, tx_bytes: 0 }],
  cloud: { name: 'c', sites: [], nodes: [], links: [link('a~b'), link('a~c')] },
})
const effect = (makes: Condition, settles = false, on: Effect['on'] = 'nodes'): Effect => ({ on, makes, settles })
const event = (id: number, of: Effect, targets: string[], s: string): LabEvent =>
  ({ t: 0, id, kind: 'x', effect: of, targets, state: s, message: '' })
const kill = effect('down')

describe('apply', () => {
  it('begins anew with every state', () => {
    let m: Model = apply(empty(), 'state', state())
    m = apply(m, 'second', { t: 1, ok: 5 })
    m = apply(m, 'links', [link('a~b', { ab: { latency_ms: 20, down: true } })])
    expect(m.state.seconds).toHaveLength(1)
    expect(linkCondition(m.links.get('a~b')!)).toBe('down')
    m = apply(m, 'state', state())
    expect(m.state.seconds).toHaveLength(0)
    expect(linkCondition(m.links.get('a~b')!)).toBe('up')
    expect(m.history.get('a')).toHaveLength(1)
  })
  it('keeps the last line of an event', () => {
    let m = apply(empty(), 'event', event(1, kill, ['a'], 'begun'))
    m = apply(m, 'event', { t: 0, kind: 'scale', message: '' })
    m = apply(m, 'event', event(2, kill, ['b'], 'begun'))
    m = apply(m, 'event', event(1, kill, ['a'], 'reverted'))
    expect(eventsOf(m.state.events).map((e) => [e.id, e.state])).toEqual([[2, 'begun'], [1, 'reverted']])
  })
  it('forgets what is long ago', () => {
    let m = empty()
    for (let t = 0; t < 10_000; t++) m = apply(m, 'nodes', [{ t, node: 'a' }])
    expect(m.history.get('a')!.length).toBeLessThan(200)
    expect(m.history.get('a')!.at(-1)!.t).toBe(9999)
  })
})

describe('conditions', () => {
  it('tells links by what is set', () => {
    expect(linkCondition(link('x', { changed: true }))).toBe('changed')
    expect(linkCondition(link('x', { carrier_down: true }))).toBe('down')
    expect(roundTrip(link('x'))).toBe(42)
  })
  it('tells nodes by their events', () => {
    const after = (...e: LabEvent[]) => Object.fromEntries(nodeConditions(e))
    expect(after(event(1, kill, ['a'], 'active'))).toEqual({ a: 'down' })
    expect(after(event(1, kill, ['a'], 'reverted'))).toEqual({})
    expect(after(event(1, effect('down', true), ['a'], 'active'), event(2, effect('up', true), ['a'], 'active'))).toEqual({})
    expect(after(event(1, effect('changed'), ['a'], 'active'), event(2, effect('down'), ['a'], 'begun'))).toEqual({ a: 'down' })
    expect(after(event(1, effect('down'), ['a'], 'failed'))).toEqual({})
    expect(after(event(1, effect('changed', true), ['a'], 'begun'))).toEqual({ a: 'changed' })
    expect(after(event(1, effect('changed', true), ['a'], 'active'))).toEqual({})
    expect(after(event(1, effect('down', false, 'links'), ['a~b'], 'active'))).toEqual({})
    expect(after(event(1, effect('changed', false, 'streams'), ['a>b'], 'active'))).toEqual({ a: 'changed', b: 'changed' })
  })
})
