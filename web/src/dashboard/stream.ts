// The live feed of a run. It reconnects after a server restart, a network failure or a suspended machine.
import { everyKind, type Kind } from '../go/live'

/** The server pings every 5 s. After this silence the connection counts as lost. */
export const silence = 12_000
const retry = 1_500

export type Connection = 'connecting' | 'live' | 'lost' | 'ended'

export interface Stream { close(): void }

export interface Listener {
  message(kind: Kind, data: unknown): void
  connection(c: Connection): void
}

/**
 * follow opens the feed at url(after), where after is the ID of the last message, '' for none. It reopens the feed
 * after a failure, and when the page becomes visible again after a silence.
 */
export function follow(url: (after: string) => string, to: Listener): Stream {
  let source: EventSource | undefined
  let after = ''
  let lastMessage = 0
  let closed = false
  let timer: ReturnType<typeof setTimeout> | undefined

  function open(): void {
    source?.close()
    clearTimeout(timer)
    if (closed) return
    to.connection('connecting')
    lastMessage = Date.now()
    const s = new EventSource(url(after))
    source = s
    const alive = () => { lastMessage = Date.now() }
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
        lastMessage = Date.now()
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
      if (Date.now() - lastMessage >= silence) {
        to.connection('lost')
        open()
      } else watch()
    }, silence / 2)
  }

  function reopenIfSilent(): void {
    if (document.visibilityState === 'visible' && !closed && Date.now() - lastMessage >= silence) open()
  }

  function close(): void {
    closed = true
    clearTimeout(timer)
    source?.close()
    document.removeEventListener('visibilitychange', reopenIfSilent)
  }

  document.addEventListener('visibilitychange', reopenIfSilent)
  open()
  return { close }
}
