import { expect, test } from 'vitest'
import { ratio, tQuantile } from './estimate'

test('the t quantile is that of tables', () => {
  for (const [df, t] of [[1, 12.7062], [2, 4.30265], [3, 3.18245], [4, 2.77645], [10, 2.22814], [30, 2.04227], [1000, 1.96234]] as const) {
    expect(Math.abs(tQuantile(df) / t - 1)).toBeLessThan(0.005)
  }
  expect(tQuantile(1.5)).toBeGreaterThan(tQuantile(2))
})

test('a ratio has the interval that internal/evidence/stats gives it', () => {
  // stats.Ratio of {3, 200, 10} and {3, 100, 5}.
  const r = ratio({ n: 3, mean: 200, sd: 10, half: 24.8 }, { n: 3, mean: 100, sd: 5, half: 12.4 })
  expect(r?.mean).toBe(2)
  expect(r?.half).toBeCloseTo(2.77645 * 2 * Math.sqrt(2 * 0.05 ** 2 / 3), 2)
})

test('what has no interval, or no base, gets none', () => {
  expect(ratio({ n: 1, mean: 3 }, { n: 3, mean: 2, sd: 1 })).toEqual({ n: 1, mean: 1.5 })
  expect(ratio({ n: 3, mean: 3, sd: 1 }, { n: 3, mean: 0, sd: 1 })).toBeUndefined()
  const e = { n: 3, mean: 3, sd: 1 }
  expect(ratio(e, e)).toEqual({ n: 3, mean: 1 })
})
