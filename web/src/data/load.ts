// Documents embedded in the page: JSON, gzip, base 64.
import type { Report as Comparison } from '../go/compare'
import { schema, type Detail, type Run } from '../go/webdata'

/** unpack decodes a document. */
export async function unpack(text: string): Promise<unknown> {
  const raw = atob(text.trim())
  const bytes = new Uint8Array(raw.length)
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i)
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))
  return JSON.parse(await new Response(stream).text())
}

async function read(name: string, expected: string = schema): Promise<unknown> {
  const text = document.getElementById(`data-${name}`)?.textContent
  if (!text) throw new Error(`this page has no data of ${name}`)
  const value = await unpack(text)
  if ((value as { schema?: unknown }).schema !== expected) throw new Error(`its data are not ${expected}`)
  return value
}

/** readRun returns the document of the run. */
export async function readRun(): Promise<Run> {
  return (await read('run')) as Run
}

/** hasComparison reports whether the page is one of skerry compare. */
export const hasComparison = (): boolean => document.getElementById('data-comparison') !== null

/** readComparison returns the document of a comparison. */
export async function readComparison(): Promise<Comparison> {
  return (await read('comparison', 'skerry/compare/v1')) as Comparison
}

const details = new Map<number, Promise<Detail>>()

/** readDetail returns the document of a trial. It is decoded once. */
export function readDetail(id: number): Promise<Detail> {
  let d = details.get(id)
  if (!d) {
    d = read(`trial-${id}`).then((v) => v as Detail)
    details.set(id, d)
  }
  return d
}
