import { expect, test } from 'vitest'
import type { Run } from '../go/webdata'
import { chart, csv, tip, type Spec } from './chart'
import { comparison, seriesOf, withInterval } from './comparison'
import { quantileName } from './latency'
import { edgesOf } from './traffic'
import { units } from '../format/format'

test('CSV quotes what it must and lets no formula through', () => {
  expect(csv({ columns: ['a', 'b'], rows: [[1.5, null], ['x,"y"', '=1+1'], ['line\nbreak', '@x']] }))
    .toBe('a,b\r\n1.5,\r\n"x,""y""",\'=1+1\r\n"line\nbreak",\'@x\r\n')
})

const run = {
  vary: [{ name: 'workload', label: 'workload', values: ['A', 'C'] }, { name: 'scale', label: 'scale', values: ['X', '5X'] }],
  cells: [
    { label: 'A X', values: [0, 0], planned: 2, trials: [1, 3], verdict: 'valid',
      estimates: { goodput: { n: 2, mean: 100, sd: 1, half: 9 } } },
    { label: 'A 5X', values: [0, 1], planned: 2, trials: [2, 4], verdict: 'valid',
      estimates: { goodput: { n: 2, mean: 25, sd: 1, half: 9 } } },
    { label: 'C 5X', values: [1, 1], planned: 1, trials: [5], weak: true, verdict: 'suspect', estimates: {} },
  ],
  metrics: [{ id: 'goodput', label: 'Goodput', unit: 'ops' }],
} as unknown as Run
const metric = run.metrics[0]!

test('a comparison has a point for every value and a series for every other combination', () => {
  const s = seriesOf(run, { axis: 1, metric })
  expect(s.map((x) => [x.name, x.points.map((p) => p.estimate?.mean)])).toEqual(
    [['workload A', [100, 25]], ['workload C', [undefined, undefined]]])
})

test('normalised, the base is 1 and what has no base is nothing', () => {
  const s = seriesOf(run, { axis: 1, metric, base: 0 })
  expect(s[0]?.points.map((p) => p.estimate?.mean)).toEqual([1, 0.25])
  expect(s[1]?.points.map((p) => p.estimate)).toEqual([undefined, undefined])
  expect(comparison(run, { axis: 1, metric, base: 0 }).title).toBe('Goodput by scale, as a multiple of scale X')
})

test('latencies are compared by one kind of operation, and what a cell has none of stays empty', () => {
  const p99 = { id: 'p99', label: 'Latency, p99', unit: 'us', latency: true }
  const of = (operation: string, mean: number) => ({ operation, estimates: { p99: { n: 1, mean } } })
  const mixed = {
    ...run, vary: [run.vary[1]!],
    cells: [
      { values: [0], estimates: { p99: { n: 1, mean: 23.2 } }, latencies: [of('READ', 23.2), of('UPDATE', 40)] },
      { values: [1], estimates: { p99: { n: 1, mean: 224 } }, latencies: [of('UPDATE', 224)] },
    ],
  } as unknown as Run
  const means = (operation: string) => seriesOf(mixed, { axis: 0, metric: p99, operation })[0]!.points.map((p) => p.estimate?.mean)
  expect([means('UPDATE'), means('READ')]).toEqual([[40, 224], [23.2, undefined]])
  expect(comparison(mixed, { axis: 0, metric: p99, operation: 'UPDATE' }).title).toBe('UPDATE: latency, p99 by scale')
})

test('intervals are written with one unit', () => {
  expect(withInterval({ n: 3, mean: 120, half: 5 }, units.opsPerSecond)).toBe('120 ± 5.00 ops/s')
  expect(withInterval({ n: 1, mean: 900 }, units.latency)).toBe('900 µs (one repetition)')
  expect(withInterval({ n: 2, mean: 1500, half: 200 }, units.latency)).toBe('1.50 ms ± 200 µs')
})

test('percentiles and pairs', () => {
  expect([1, 0.5, 0.01, 0.001, 0].map(quantileName)).toEqual(['p0', 'p50', 'p99', 'p99.9', 'max'])
  expect(edgesOf({ nodes: ['a', 'b', 'c'], from: [0, 1, 2], to: [1, 0, 0], bytes: [5, 7, 100] }))
    .toEqual([{ a: 0, b: 2, forth: 0, back: 100 }, { a: 0, b: 1, forth: 5, back: 7 }])
})

const spec: Spec = {
  title: '<b>loud</b>', describe: 'One point.', unit: 'ms', points: 1, height: 200,
  option: () => ({ xAxis: { type: 'value' }, yAxis: { type: 'value' }, series: [{ type: 'line', data: [[0, 1], [1, 2]] }] }),
  table: () => ({ columns: ['<i>x</i>', 'y'], rows: [[0, 1], [1, 2]] }),
}

test('a figure names itself, shows its data, and text stays text', () => {
  const c = chart(spec)
  document.body.append(c.element)
  const plot = c.element.querySelector('.plot')!
  expect(plot.getAttribute('role')).toBe('img')
  expect(plot.getAttribute('tabindex')).toBe('0')
  expect(plot.getAttribute('aria-label')).toContain('<b>loud</b>. One point.')
  expect(c.element.querySelector('b')).toBeNull()
  const button = c.element.querySelector<HTMLButtonElement>('button')!
  expect(button.getAttribute('aria-expanded')).toBe('false')
  button.click()
  expect(button.getAttribute('aria-expanded')).toBe('true')
  expect(c.element.querySelectorAll('tbody tr')).toHaveLength(2)
  expect(c.element.querySelector('th')?.textContent).toBe('<i>x</i>')
  c.update({ ...spec, title: 'other' })
  expect(c.element.querySelector('.title')?.textContent).toBe('other')
  c.dispose()
})

test('a hover legend is made of elements', () => {
  const e = tip('5 s', [{ colour: '#123456', name: '<img src=x>', value: '3 ms' }])
  expect(e.querySelector('img')).toBeNull()
  expect(e.textContent).toContain('<img src=x>')
})
