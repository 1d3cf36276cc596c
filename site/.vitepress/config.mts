import { cpSync } from 'node:fs'
import { resolve } from 'node:path'
import { defineConfig } from 'vitepress'

// The pages are docs/, as they are read in the repository. What they name outside of docs/ is
// copied beside them, below files/.
const root = resolve(__dirname, '../..')
const folders = ['deploy', 'examples', 'experiments']

// GitHub's names of headings, which links in the pages are written for.
function slug(heading: string): string {
  return heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-')
}

export default defineConfig({
  title: 'Skerry',
  description: 'A laboratory for distributed databases on fragmented clouds',
  lang: 'en-GB',
  head: [['link', { rel: 'icon', href: 'data:,' }]], // as report and dashboard: no browser asks for one
  base: process.env.SITE_BASE ?? '/',
  srcDir: resolve(root, 'docs'),
  outDir: resolve(root, 'site/dist'),
  rewrites: { ':folder/README.md': ':folder/index.md' },
  markdown: {
    anchor: { slugify: slug },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark' },
    config(md) {
      // Two braces in the pages are Go's templates, and not Vue's.
      const shown = (text: string) => md.utils.escapeHtml(text).replace(/\{\{/g, '&#123;&#123;')
      md.renderer.rules.text = (tokens, i) => shown(tokens[i]!.content)
      md.renderer.rules.code_inline = (tokens, i) => `<code>${shown(tokens[i]!.content)}</code>`
      md.renderer.rules.code_block = (tokens, i) => `<pre><code>${shown(tokens[i]!.content)}</code></pre>\n`
      md.core.ruler.push('files', (state) => {
        for (const block of state.tokens) {
          for (const token of block.children ?? []) {
            const href = token.attrGet?.('href') ?? ''
            const outside = new RegExp(`^(?:\\.\\./)+((?:${folders.join('|')})/.*)$`).exec(href)
            if (outside) {
              token.attrSet('href', `/files/${outside[1]}`)
              token.attrSet('target', '_blank')
            }
          }
        }
      })
    },
  },
  // The pages stand beside this folder, and would look for Vue beside themselves.
  vite: {
    resolve: {
      alias: [
        { find: /^vue\/server-renderer$/, replacement: resolve(__dirname, '../node_modules/vue/server-renderer/index.mjs') },
        { find: /^vue$/, replacement: resolve(__dirname, '../node_modules/vue/dist/vue.runtime.esm-bundler.js') },
      ],
    },
    build: { chunkSizeWarningLimit: 4000 },
  },
  ignoreDeadLinks: [/^\/files\//],
  buildEnd(site) {
    for (const folder of folders) cpSync(resolve(root, folder), resolve(site.outDir, 'files', folder), { recursive: true, dereference: true })
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Tutorial', link: '/tutorial' },
      { text: 'How-tos', link: '/howto/ci' },
      { text: 'Reference', link: '/experiment-reference' },
      { text: 'Results', link: '/results/' },
    ],
    sidebar: [
      {
        text: 'Begin',
        items: [
          { text: 'Tutorial', link: '/tutorial' },
          { text: 'Concepts', link: '/concepts' },
          { text: 'Troubleshooting', link: '/troubleshooting' },
          { text: 'Questions and answers', link: '/faq' },
          { text: 'Glossary', link: '/glossary' },
        ],
      },
      {
        text: 'How to',
        items: [
          { text: 'hold a promise in CI', link: '/howto/ci' },
          { text: 'use measured distances', link: '/howto/own-matrix' },
          { text: 'bring your own database', link: '/howto/own-database' },
          { text: 'measure a running cluster', link: '/howto/own-cluster' },
          { text: 'measure clusters on other platforms', link: '/howto/cluster-platforms' },
          { text: 'compare a cluster with its emulated copy', link: '/howto/emulated-copy' },
          { text: 'use a YCSB workload file', link: '/howto/workload-file' },
          { text: 'compare two versions', link: '/howto/upgrade' },
          { text: 'run workloads side by side', link: '/howto/side-by-side' },
          { text: 'share a table between clients', link: '/howto/several-clients' },
          { text: 'run on a rented machine', link: '/howto/cloud-machine' },
          { text: 'run a grid on Slurm', link: '/howto/slurm' },
          { text: 'run a grid on Kubernetes', link: '/howto/kubernetes' },
          { text: 'use many machines', link: '/engines' },
          { text: 'reach machines', link: '/machines' },
          { text: 'make machines in clouds', link: '/howto/real-clouds' },
          { text: 'reproduce a paper', link: '/howto/reproduce-a-paper' },
          { text: 'analyse the data', link: '/data' },
        ],
      },
      {
        text: 'Reference',
        items: [
          { text: 'Experiment file', link: '/experiment-reference' },
          { text: 'Events', link: '/events' },
          { text: 'Choosing', link: '/choosing' },
          { text: 'Assertions', link: '/assertions' },
          { text: 'Recovery', link: '/recovery' },
          { text: 'Audit', link: '/audit' },
          {
            text: 'Databases',
            link: '/databases',
            collapsed: true,
            items: [
              { text: 'Redis Cluster and Valkey', link: '/redis' },
              { text: 'Cassandra', link: '/cassandra' },
              { text: 'MySQL family', link: '/mysql' },
              { text: 'etcd', link: '/etcd' },
              { text: 'PostgreSQL', link: '/postgres' },
              { text: 'HBase', link: '/hbase' },
              { text: 'MongoDB and FerretDB', link: '/mongodb' },
            ],
          },
          { text: 'Your own database', link: '/own-database' },
          { text: 'Links and routing', link: '/routing' },
          { text: 'Services and volumes', link: '/services' },
          { text: 'Report', link: '/report' },
          { text: 'Dashboard', link: '/dashboard' },
          { text: 'Run directory', link: '/run-directory' },
          { text: 'summary.json', link: '/run-summary' },
          { text: 'Rights', link: '/rights' },
          { text: 'Commands', link: '/commands/' },
        ],
      },
      {
        text: 'Systems',
        items: [
          { text: 'Hydra', link: '/hydra' },
          { text: 'Guarantees of Hydra', link: '/hydra-guarantees' },
          { text: 'Operating Hydra', link: '/hydra-operations' },
          { text: 'Tests of Hydra', link: '/hydra-tests' },
          { text: 'Metadata service', link: '/metadata' },
          { text: 'Several metadata servers', link: '/metadata-servers' },
        ],
      },
      {
        text: 'Evidence',
        items: [
          { text: 'Fidelity', link: '/fidelity' },
          { text: 'Links and their accuracy', link: '/link-accuracy' },
          { text: 'Scale', link: '/scale' },
          { text: 'Results', link: '/results/' },
          { text: 'Architecture', link: '/architecture' },
          { text: 'How to cite', link: '/cite' },
        ],
      },
    ],
  },
})
