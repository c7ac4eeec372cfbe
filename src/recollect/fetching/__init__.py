"""Pages of the web: fetched without reaching what is not the web's, and read as documents.

`client` fetches, through `guard`, which decides what may be contacted; `page` makes a document of what came; `robots`,
`sitemaps` and `crawl` find pages. The package knows neither store nor settings: it works alone in a notebook.
"""
