module odradek/serving

go 1.26.0
