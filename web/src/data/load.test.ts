import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { unpack } from './load'

test('a document comes back as it was packed', async () => {
  const value = { name: '</script>', list: [1, 2.5, null], text: 'Zürich ✓' }
  expect(await unpack(`\n${gzipSync(JSON.stringify(value)).toString('base64')}\n`)).toEqual(value)
})

test('what is cut short is an error', async () => {
  const whole = gzipSync(JSON.stringify({ list: Array.from({ length: 999 }, (_, i) => i) }))
  await expect(unpack(whole.subarray(0, 200).toString('base64'))).rejects.toThrow()
})
