import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { follow, silence, type Stream } from './stream'

class Source {
  static all: Source[] = []
  listeners = new Map<string, (e: unknown) => void>()
  closed = false
  onerror: (() => void) | null = null
  constructor(readonly url: string) { Source.all.push(this) }
  addEventListener(kind: string, f: (e: unknown) => void): void { this.listeners.set(kind, f) }
  close(): void { this.closed = true }
  say(kind: string, data: unknown, lastEventId = ''): void { this.listeners.get(kind)?.({ data: JSON.stringify(data), lastEventId }) }
}

let open: Stream[] = []
const last = () => Source.all.at(-1)!

describe('follow', () => {
  beforeEach(() => {
    Source.all = []
    vi.useFakeTimers()
    vi.stubGlobal('EventSource', Source)
  })
  afterEach(() => {
    for (const s of open) s.close()
    open = []
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  const start = () => {
    const told: string[] = []
    const s = follow((after) => `live?after=${after}`, { message: (k) => told.push(k), connection: (c) => told.push(c) })
    open.push(s)
    return { told, s }
  }

  it('goes on where it was after the connection broke', () => {
    const { told } = start()
    last().say('second', {}, 'e.7')
    last().onerror!()
    vi.advanceTimersByTime(2000)
    expect(Source.all.map((x) => x.url)).toEqual(['live?after=', 'live?after=e.7'])
    expect(Source.all[0]!.closed).toBe(true)
    expect(told).toEqual(['connecting', 'live', 'second', 'lost', 'connecting'])
  })

  it('comes back after a sleep in which nothing was heard', () => {
    start()
    last().say('second', {}, 'e.7')
    for (let i = 0; i < 4; i++) {
      vi.advanceTimersByTime(silence / 2 - 1)
      last().say('ping', {})
    }
    expect(Source.all).toHaveLength(1)
    vi.setSystemTime(Date.now() + 3_600_000)
    document.dispatchEvent(new Event('visibilitychange'))
    expect(last().url).toBe('live?after=e.7')
    expect(Source.all).toHaveLength(2)
    Source.all[0]!.say('second', {}, 'e.1')
    last().onerror!()
    vi.advanceTimersByTime(2000)
    expect(last().url).toBe('live?after=e.7')
  })

  it('notices a connection that is silent', () => {
    const { told } = start()
    vi.advanceTimersByTime(3 * silence)
    expect(Source.all.length).toBeGreaterThan(1)
    expect(told).toContain('lost')
  })

  it('ends with the run, and when it is closed', () => {
    const { told, s } = start()
    last().say('end', {}, 'e.9')
    expect(told.at(-1)).toBe('ended')
    vi.advanceTimersByTime(10 * silence)
    expect(Source.all).toHaveLength(1)
    s.close()
    document.dispatchEvent(new Event('visibilitychange'))
    expect(Source.all).toHaveLength(1)
  })
})
