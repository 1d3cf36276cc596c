import { expect, test } from 'vitest'
import { bytes, clock, duration, figure, percent, short, thousands, units } from './format'

const thin = '\u202f'

test('figures have about three digits that count', () => {
  expect([0, 0.00123, 0.5, 12.345, 99.96, 1234567, -2.5, NaN, null].map((v) => figure(v)))
    .toEqual(['0', '0.0012', '0.50', '12.3', '100', `1${thin}234${thin}567`, '-2.50', '–', '–'])
  expect(thousands(-12345)).toBe(`−12${thin}345`)
})

test('units are told with every value', () => {
  expect(duration(840)).toBe('840 µs')
  expect(duration(12_500)).toBe('12.5 ms')
  expect(duration(2_100_000)).toBe('2.10 s')
  expect(bytes(999)).toBe('999 B')
  expect(bytes(1_500_000)).toBe('1.50 MB')
  expect(short(25_000)).toBe('25 k')
  expect(percent(0.1234)).toBe(`12.3${thin}%`)
  expect(percent(0.99999)).toBe(`99.999${thin}%`)
  expect(units.bitsPerSecond.write(190e6)).toBe('190 Mbit/s')
})

test('ticks are as short as they are exact', () => {
  expect(units.latency.tick(90_000)).toBe('90 ms')
  expect(units.share.tick(0.25)).toBe(`25${thin}%`)
})

test('times are read as clocks do', () => {
  expect([-1, 42, 200, 3723].map(clock)).toEqual(['−1 s', '42 s', '3:20', '1:02:03'])
})
