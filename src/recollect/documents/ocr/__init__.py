"""Text recognition: pages that are pictures, and pictures, to lines of words with their boxes (the extra ``ocr``)."""
