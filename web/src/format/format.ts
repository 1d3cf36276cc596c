// Formats of figures: about three significant digits, grouped thousands, units.

const none = '–'
const thin = '\u202f'

/** figure formats a number with about three significant digits. */
export function figure(v: number | null | undefined): string {
  if (v === null || v === undefined || !Number.isFinite(v)) return none
  const a = Math.abs(v)
  if (a === 0) return '0'
  if (a >= 99.95) return thousands(Math.round(v))
  if (a >= 9.995) return v.toFixed(1)
  if (a >= 0.0995) return v.toFixed(2)
  return String(Number(v.toPrecision(2)))
}

/** plural formats a count with its noun: "1 run", "3 runs". */
export const plural = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`

/** thousands groups the digits of a whole number. */
export function thousands(v: number): string {
  const s = String(Math.abs(Math.round(v))).replace(/\B(?=(\d{3})+(?!\d))/g, thin)
  return (v < 0 ? '−' : '') + s
}

/** Unit formats values, and names the axis. */
export interface Unit {
  name: string
  write(v: number): string
  /** tick is a shorter format for axes. */
  tick(v: number): string
}

/** tick formats a round value without trailing digits. */
function tick(v: number): string {
  return Math.abs(v) >= 1e4 ? thousands(v) : String(Number(v.toPrecision(4)))
}

function scaled(v: number, base: number, units: string[], write: (v: number) => string = figure): string {
  let i = 0
  let a = Math.abs(v)
  while (a >= base * 0.9995 && i < units.length - 1) {
    a /= base
    i++
  }
  return `${v < 0 ? '−' : ''}${write(a)}${units[i] === '' ? '' : ' ' + units[i]}`
}

/** short formats counts as 1.2 k, 3.4 M. */
export function short(v: number): string {
  return scaled(v, 1000, ['', 'k', 'M', 'G', 'T'], tick)
}

/** duration formats microseconds: 840 µs, 12.5 ms, 2.1 s. */
export function duration(us: number, write: (v: number) => string = figure): string {
  if (!Number.isFinite(us)) return none
  if (Math.abs(us) < 1000) return `${write(us)} µs`
  if (Math.abs(us) < 1e6) return `${write(us / 1e3)} ms`
  return `${write(us / 1e6)} s`
}

/** bytes formats bytes in powers of ten: 1.5 MB. */
export function bytes(v: number, write: (v: number) => string = figure): string {
  return scaled(v, 1000, ['B', 'kB', 'MB', 'GB', 'TB'], write)
}

/** clock formats seconds since the start: 42 s, 3:20, 1:02:03. */
export function clock(s: number): string {
  const sign = s < 0 ? '−' : ''
  const a = Math.abs(s)
  if (a < 120) return `${sign}${Number(a.toFixed(1))} s`
  const whole = Math.round(a)
  const two = (n: number) => String(n).padStart(2, '0')
  const hours = Math.floor(whole / 3600)
  const minutes = Math.floor((whole % 3600) / 60)
  return sign + (hours ? `${hours}:${two(minutes)}` : String(minutes)) + ':' + two(whole % 60)
}

/** percent formats a share of 0 to 1. */
export function percent(share: number): string {
  if (!Number.isFinite(share)) return none
  const p = share * 100
  if (p > 99.9 && p < 100) return `${Math.floor(p * 1000) / 1000}${thin}%`
  return `${figure(p)}${thin}%`
}

const of = (name: string, write: (v: number) => string, tick = write): Unit => ({ name, write, tick })

export const units = {
  opsPerSecond: of('operations/s', (v) => `${figure(v)} ops/s`, short),
  count: of('operations', (v) => figure(v), short),
  latency: of('', (v) => duration(v), (v) => duration(v, tick)),
  cores: of('cores', (v) => `${figure(v)} cores`, tick),
  bytes: of('bytes', (v) => bytes(v), (v) => bytes(v, tick)),
  bytesPerSecond: of('bytes/s', (v) => `${bytes(v)}/s`, (v) => bytes(v, tick)),
  bitsPerSecond: of('bits/s', (v) => `${scaled(v, 1000, ['', 'k', 'M', 'G', 'T'])}bit/s`),
  seconds: of('seconds', (v) => `${figure(v)} s`, clock),
  milliseconds: of('milliseconds', (v) => `${figure(v)} ms`, (v) => `${tick(v)} ms`),
  share: of('', percent, (v) => `${tick(v * 100)}${thin}%`),
  times: of('times', (v) => `${figure(v)} ×`, tick),
  plain: of('', figure),
} satisfies Record<string, Unit>
