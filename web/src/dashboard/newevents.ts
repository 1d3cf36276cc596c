// The events of a new experiment, one row each.
import type { Event as DraftEvent, Places } from '../go/draft'
import type { Offer } from '../go/event'
import { h, replace } from '../ui/dom'

export interface EventRows {
  element: HTMLElement
  /** places sets the possible targets of events. */
  places(p: Places): void
}

/** targetsOf returns the targets of an offer. '' is a random target, which some offers lack. */
export function targetsOf(o: Offer, p: Places): string[] {
  return [...(o.on === 'nodes' && o.targets === 'of' ? [] : ['']), ...(o.on === 'links' ? p.links : p.nodes)]
}

/** eventRows edits a list of events. onChange is called after every change. */
export function eventRows(offers: Offer[], onChange: (events: DraftEvent[]) => void): EventRows {
  let known: Places = { sites: [], nodes: [], links: [] }
  const events: DraftEvent[] = []
  const list = h('div')
  const offerOf = (e: DraftEvent) => offers.find((o) => o.id === e.offer) ?? offers[0]!

  function add(): void {
    events.push({ offer: offers[0]!.id, target: '', amount: '', at: '', for: '' })
    draw()
    onChange(events)
  }

  function fit(e: DraftEvent): void {
    const can = targetsOf(offerOf(e), known)
    if (!can.includes(e.target)) e.target = can[0] ?? ''
  }

  function row(e: DraftEvent, i: number): HTMLElement {
    const o = offerOf(e)
    const n = i + 1
    const what = h('select',
      { 'aria-label': `Event ${n}`, onchange: () => { e.offer = what.value; e.amount = ''; fit(e); draw(); onChange(events) } },
      offers.map((x) => h('option', { value: x.id }, x.title)))
    what.value = e.offer
    const whom = h('select', { 'aria-label': `Target of event ${n}`, onchange: () => { e.target = whom.value; onChange(events) } },
      targetsOf(o, known).map((t) => h('option', { value: t }, t || `random ${o.on === 'links' ? 'link' : 'node'}`)))
    whom.value = e.target
    const word = (key: 'amount' | 'at' | 'for', label: string, hint: string) => {
      const input = h('input', { type: 'text', size: 5, value: e[key], placeholder: hint, 'aria-label': `${label}, event ${n}`,
        oninput: () => { e[key] = input.value.trim(); onChange(events) } })
      return h('span', { class: 'field' }, `${label} `, input)
    }
    return h('div', { class: 'eventrow', role: 'group', 'aria-label': `Event ${n}` }, what, whom,
      o.amount ? word('amount', o.amount.label, o.amount.value) : null, word('at', 'at', 'evenly'), word('for', 'for', 'evenly'),
      h('button', { type: 'button', 'aria-label': `Remove event ${n}`, onclick: () => { events.splice(i, 1); draw(); onChange(events) } },
        '×'))
  }

  function draw(): void {
    replace(list, events.map(row))
  }

  return {
    element: h('fieldset', { class: 'happenings' }, h('legend', {}, 'Events'), list,
      h('button', { type: 'button', onclick: add }, 'Add event')),
    places(p) {
      const same = JSON.stringify(p) === JSON.stringify(known)
      known = p
      if (same) return
      events.forEach(fit)
      draw()
    },
  }
}
