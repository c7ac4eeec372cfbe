"""Files as somebody drops them upon a page."""

from __future__ import annotations

from playwright.sync_api import Page


def drop(page: Page, files: dict[str, str], upon: str = ".dropzone") -> None:
    """Files, some in folders, dropped upon an element as a browser gives them."""
    page.wait_for_load_state()
    page.evaluate(
        """([files, upon]) => {
          const tree = {};
          for (const [path, text] of Object.entries(files)) {
            const parts = path.split("/");
            let at = tree;
            for (const part of parts.slice(0, -1)) at = at[part] ??= {};
            at[parts.at(-1)] = new File([text], parts.at(-1));
          }
          const entry = (name, what, above) => what instanceof File
            ? {isFile: true, fullPath: `${above}/${name}`, file: (done) => done(what)}
            : {isFile: false, fullPath: `${above}/${name}`, createReader: () => {
                // As Chromium does: a hundred at a time.
                const some = Object.entries(what).map(([inner, it]) => entry(inner, it, `${above}/${name}`));
                return {readEntries: (done) => done(some.splice(0, 100))};
              }};
          const items = Object.entries(tree).map(([name, what]) => ({webkitGetAsEntry: () => entry(name, what, "")}));
          const event = new DragEvent("drop", {bubbles: true, cancelable: true});
          Object.defineProperty(event, "dataTransfer", {value: {items, files: []}});
          document.querySelector(upon).dispatchEvent(event);
        }""",
        [files, upon],
    )
