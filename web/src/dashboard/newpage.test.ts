import { expect, test } from 'vitest'
import { offers } from '../go/offers'
import { eventRows, targetsOf } from './newevents'
import { linesOf, offsetOf } from './maker'
import { numbersOf } from './newpage'

const places = { sites: ['A', 'B'], nodes: ['a', 'b'], links: ['a~b'] }
const offer = (id: string) => offers.find((o) => o.id === id)!

test('what a person types becomes values', () => {
  expect(numbersOf('0.2, 1;far 5')).toEqual([0.2, 1, 5])
  expect(linesOf(' a < 1\n\n b ')).toEqual(['a < 1', 'b'])
  expect(offsetOf('ab\ncd\n', 2, 2)).toBe(4)
  expect(offsetOf('ab', 9, 9)).toBe(2)
})

test('an event is aimed at what it is about; nodes are cut off by name alone', () => {
  expect(targetsOf(offer('cut'), places)).toEqual(['', 'a~b'])
  expect(targetsOf(offer('kill'), places)).toEqual(['', 'a', 'b'])
  expect(targetsOf(offer('isolate'), places)).toEqual(['a', 'b'])
})

test('events are added, changed and removed', () => {
  let told: { offer: string; target: string }[] = []
  const rows = eventRows(offers, (e) => { told = structuredClone(e) })
  rows.places(places)
  const add = [...rows.element.querySelectorAll('button')].at(-1)!
  add.click()
  const what = rows.element.querySelector('select')!
  what.value = 'isolate'
  what.dispatchEvent(new Event('change'))
  expect(told).toMatchObject([{ offer: 'isolate', target: 'a' }])
  rows.places({ ...places, nodes: ['c'] }) // another topology
  rows.element.querySelector<HTMLButtonElement>('[aria-label="Remove event 1"]')!.click()
  expect(told).toEqual([])
})
