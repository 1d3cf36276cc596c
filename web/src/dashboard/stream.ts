// The feed of a run. It comes back by itself: after a server's restart, a cable, a night's sleep.
import { everyKind, type Kind } from '../go/live'

/** The server pings every 5 s: who hears nothing for so long is not connected any more. */
export const silence = 12_000
const retry = 1_500

export type Connection = 'connecting' | 'live' | 'lost' | 'ended'

export interface Stream { close(): void }

export interface Hearing {
  message(kind: Kind, data: unknown): void
  connection(c: Connection): void
}

/**
 * follow opens the feed at url(after), where after is the last message heard, '' for none. It
 * opens it anew when it breaks, and when the page is looked at again after it was silent.
 */
export function follow(url: (after: string) => string, to: Hearing): Stream {
  let source: EventSource | undefined
  let after = ''
  let heard = 0
  let closed = false
  let timer: ReturnType<typeof setTimeout> | undefined

  function open(): void {
    source?.close()
    clearTimeout(timer)
    if (closed) return
    to.connection('connecting')
    heard = Date.now()
    const s = new EventSource(url(after))
    source = s
    const alive = () => { heard = Date.now() }
    s.addEventListener('open', alive)
    s.addEventListener('ping', alive)
    s.onerror = () => {
      if (s !== source || closed) return
      s.close()
      to.connection('lost')
      timer = setTimeout(open, retry)
    }
    for (const kind of everyKind) {
      s.addEventListener(kind, (e: MessageEvent<string>) => {
        if (s !== source || closed) return
        heard = Date.now()
        after = e.lastEventId || after
        to.connection('live')
        to.message(kind, JSON.parse(e.data))
        if (kind === 'end') {
          close()
          to.connection('ended')
        }
      })
    }
    watch()
  }

  function watch(): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (closed) return
      if (Date.now() - heard >= silence) {
        to.connection('lost')
        open()
      } else watch()
    }, silence / 2)
  }

  function look(): void {
    if (document.visibilityState === 'visible' && !closed && Date.now() - heard >= silence) open()
  }

  function close(): void {
    closed = true
    clearTimeout(timer)
    source?.close()
    document.removeEventListener('visibilitychange', look)
  }

  document.addEventListener('visibilitychange', look)
  open()
  return { close }
}
