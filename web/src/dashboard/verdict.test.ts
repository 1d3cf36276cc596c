import { expect, test } from 'vitest'
import type { Warning } from '../go/warnings'
import type { State } from '../go/live'
import type { Entry } from '../go/serve'
import { sorted, olderFirst } from './runspage'
import { outcome, warningList, verdicts, weight } from './verdict'

const entry = (more: Partial<Entry>): Entry =>
  ({ name: 'x', state: 'finished', planned: 2, trials: { valid: 2 }, notes: { schema: '', revision: 0 }, ...more })
const doubt = (kind: Warning['kind'], ...trials: number[]): Warning => ({ kind, trials, text: `<b>${kind}</b>` })
const texts = (e: Entry) => verdicts(e).map((b) => [b.textContent, b.className])

test('all is valid only where nothing is wrong', () => {
  expect(texts(entry({}))).toEqual([['all valid', 'badge good']])
  expect(texts(entry({ doubts: [doubt('assertion', 1)] }))).toEqual([['assertion failed', 'badge bad']])
  expect(texts(entry({ trials: { valid: 1, suspect: 1 }, doubts: [doubt('trust', 2)] }))).toEqual([['1 suspect', 'badge warn']])
  expect(texts(entry({ state: 'interrupted', trials: { valid: 1 } }))).toEqual([['interrupted', 'badge warn']])
  expect(texts(entry({ state: 'running', doubts: [doubt('failed', 1, 2)] }))).toEqual([['2 failed', 'badge bad'], ['running', 'badge']])
})

test('the gravest comes first', () => {
  const list = [entry({ name: 'fine' }), entry({ name: 'suspect', doubts: [doubt('trust', 1)] }),
    entry({ name: 'broken', doubts: [doubt('assertion', 1), doubt('trust', 1)] }), entry({ name: 'lost', doubts: [doubt('audit', 1)] })]
  expect(sorted(list, { key: (e) => -weight(e) }, false).map((e) => e.name)).toEqual(['broken', 'lost', 'suspect', 'fine'])
})

test('what has no value comes last, either way', () => {
  const list = [entry({ name: 'none' }), entry({ name: 'few', goodput_ops_s: [1, 1] }), entry({ name: 'many', goodput_ops_s: [2, 9] })]
  const key = (e: Entry) => e.goodput_ops_s?.[1] ?? NaN
  expect(sorted(list, { key }, false).map((e) => e.name)).toEqual(['few', 'many', 'none'])
  expect(sorted(list, { key }, true).map((e) => e.name)).toEqual(['many', 'few', 'none'])
})

test('the older run is A, the newer B', () => {
  const [old, young] = [entry({ name: 'old', started: '2026-11-01T10:00:00Z' }), entry({ name: 'young', started: '2026-11-02T10:00:00Z' })]
  expect(olderFirst(young, old).map((e) => e.name)).toEqual(['old', 'young'])
  expect(olderFirst(old, young).map((e) => e.name)).toEqual(['old', 'young'])
})

test('what is wrong is text', () => {
  expect(warningList([])).toBeNull()
  const list = warningList([doubt('assertion', 1)])!
  expect(list.querySelector('b')).toBeNull()
  expect(list.textContent).toContain('<b>')
})

test('the end of a run tells its verdict and its assertions', () => {
  const s = (more: Partial<State>): State =>
    ({ run: { name: '', experiment: '', planned: 1 }, seconds: [], nodes: [], events: [],
    totals: { ok: 0, failed: 0, unknown: 0, dropped: 0 }, doubts: [], results: [], ...more })
  const ended = { id: 1, state: 'ok', goodput_ops_s: 1, verdict: 'valid' }
  expect(outcome(s({ results: [ended] }))).toBe('Finished: 1 valid trial.')
  expect(outcome(s({ results: [{ ...ended, assertions: [{ text: 'x', held: false, value: '1' }] }],
    doubts: [doubt('assertion', 1)] }))).toBe('Finished. 0 of 1 assertions held.')
  expect(outcome(s({}))).toBe('Finished: 0 of 1 trial.')
})
