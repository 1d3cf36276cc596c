// @vitest-environment node
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'

// Keys that belong to Grafana's Prometheus, which reads them of annotations, and not to the schema.
const ofPrometheus = ['expr', 'step', 'titleFormat', 'textFormat']

type Annotations = { annotations: { list: Record<string, unknown>[] } }

// What TypeScript finds wrong with a dashboard, held against the types that Grafana's schema is
// published as. It is put into the source as a literal, so that its words are not taken for any
// text. A key that the schema does not have must be refused.
function mistakes(dashboard: object): string[] {
  const file = resolve('dashboard.check.ts')
  const text = `import type { Dashboard } from '@grafana/schema'
export const dashboard: Dashboard = ${JSON.stringify(dashboard)}
// @ts-expect-error
export const wrong: Dashboard = ${JSON.stringify({ ...dashboard, refreshh: '5s' })}
`
  const options = { strict: true, skipLibCheck: true, noEmit: true, module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler, types: [] }
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists } = host
  host.fileExists = (name) => name === file || fileExists(name)
  host.getSourceFile = (name, ...rest) =>
    name === file ? ts.createSourceFile(name, text, ts.ScriptTarget.ES2022) : getSourceFile(name, ...rest)
  const program = ts.createProgram([file], options, host)
  return ts.getPreEmitDiagnostics(program).map((d) => ts.flattenDiagnosticMessageText(d.messageText, '\n'))
}

test("Grafana's schema has everything that the dashboard for it says", () => {
  const dashboard = JSON.parse(readFileSync('../docs/grafana-dashboard.json', 'utf8')) as Annotations
  for (const a of dashboard.annotations.list) for (const key of ofPrometheus) delete a[key]
  expect(mistakes(dashboard)).toEqual([])
}, 120_000)
