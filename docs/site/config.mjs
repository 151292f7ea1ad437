// The site of the documents. docs/README.md is its table of contents: the side bar has the sections of that page, with their links.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { defineConfig } from 'vitepress'

const site = join(import.meta.dirname, '..')
const root = process.env.ROOT

const title = (page) => readFileSync(join(site, page), 'utf8').match(/^# (.*)$/m)[1].replaceAll('`', '')
const isFolder = (path) => existsSync(join(root, path)) && statSync(join(root, path)).isDirectory()
/** The page to which a link leads, or nothing if it leads elsewhere. */
function pageOf(from, link) {
  const path = posix.join(dirname(from), link.split('#')[0]).replace(/README\.md$/, 'index.md')
  return [path, posix.join(path, 'index.md')].find((page) => page.endsWith('.md') && existsSync(join(site, page)))
}

const contents = 'docs/index.md'
const sections = readFileSync(join(site, contents), 'utf8').split(/^## /m).slice(1).map((section) => {
  const items = new Map()
  for (const [, text, target] of section.matchAll(/\[([^\]]+)\]\(([^)\s]+)\)/g)) {
    const page = pageOf(contents, target)
    if (page && !items.has(page)) items.set(page, text.replaceAll('`', ''))
  }
  return { heading: section.split('\n')[0], items }
}).filter((section) => section.items.size)

/** A page must be in the table of contents, or in a folder that is there. */
const listed = new Set([contents, 'index.md', ...sections.flatMap((section) => [...section.items.keys()])])
const pages = [...readdirSync(site), ...readdirSync(join(site, 'docs'), { recursive: true }).map((name) => posix.join('docs', name))]
  .filter((name) => name.endsWith('.md')).sort()
const missing = pages.filter((page) => !listed.has(page) && (dirname(page) === 'docs' || !listed.has(posix.join(dirname(page), 'index.md'))))
if (missing.length) throw new Error(`docs/README.md has no link to ${missing.join(', ')}`)

const link = (page) => `/${page.replace(/(index)?\.md$/, '')}`
/** An entry of the side bar. The page of a folder has the other pages of the folder below it. */
function entry(page, text = title(page)) {
  const isOfFolder = page.endsWith('/index.md') && page !== contents
  const below = isOfFolder ? pages.filter((other) => other !== page && dirname(other) === dirname(page)).map((other) => entry(other)) : []
  return { text: text[0].toUpperCase() + text.slice(1), link: link(page), ...(below.length && { collapsed: true, items: below }) }
}

/** As GitHub makes the anchor of a heading, so that links work there and here. */
const slugify = (heading) => heading.trim().toLowerCase().replaceAll(/[^\p{L}\p{N}\p{M}\p{Pc} -]/gu, '').replaceAll(' ', '-')

/** Leads links to files that are no pages to their copies. A folder has no copy, so its name stays as text. */
function links(md) {
  md.core.ruler.push('links', ({ tokens, env }) => {
    for (const { children } of tokens.filter((token) => token.type === 'inline')) {
      for (const [at, token] of children.entries()) {
        const href = token.type === 'link_open' && token.attrGet('href')
        if (!href || /^(\w+:|#)/.test(href)) continue
        const page = pageOf(env.relativePath, href)
        const target = posix.join(dirname(env.relativePath), href.split('#')[0])
        if (page) token.attrSet('href', link(page) + (/\/$/.test(link(page)) ? '' : '.html') + (href.match(/#.*$/)?.[0] ?? ''))
        else if (isFolder(target)) {
          const end = children.findIndex((other, place) => place > at && other.type === 'link_close')
          for (const end_of_link of [token, children[end]]) Object.assign(end_of_link, { type: 'text', tag: '', nesting: 0, content: '' })
        } else if (existsSync(join(root, target))) {
          token.attrSet('href', `/files/${target}${/\.(png|svg|gif)$/.test(target) ? '' : '.txt'}`)
          token.attrSet('target', '_self')
        }
      }
    }
  })
}

export default defineConfig({
  title: 'Assistants',
  description: 'A serverless API for conversational assistants',
  base: process.env.SITE_BASE ?? '/',
  outDir: process.env.OUT,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    anchor: { slugify },
    config: links,
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  themeConfig: {
    // A decision often has the word, and seldom the answer.
    search: {
      provider: 'local',
      options: { miniSearch: { searchOptions: { boostDocument: (id) => (id.includes('/adr/') ? 0.2 : 1) } } },
    },
    outline: [2, 3],
    externalLinkIcon: true,
    nav: [{ text: 'All documents', link: '/docs/' }],
    sidebar: [
      { text: 'Start', items: [entry('index.md'), entry(contents)] },
      ...sections.map(({ heading, items }) => ({ text: heading, collapsed: false, items: [...items].map((item) => entry(...item)) })),
    ],
  },
})
